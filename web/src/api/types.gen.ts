// Written by web/generate.py from the gateway's contract; `make types` writes it anew. Not edited by hand.

export interface Accepted {
  readonly session: string;
  readonly stream: string;
  readonly version: number;
  readonly seq: number;
  readonly input: string | null;
  readonly duplicate: boolean;
  readonly warning?: string;
}

export interface AdoptSession {
  readonly command?: "AdoptSession";
  readonly session: string;
  readonly profile?: string | null;
  readonly anyway?: boolean;
}

export interface AgentActor {
  readonly type: "agent";
  readonly session: string;
  readonly call?: string;
}

export interface AgentAttached {
  readonly kind: "AgentAttached";
  readonly task: string;
  readonly number: number;
  readonly agent: string;
  readonly version: string;
  readonly remote: string;
  readonly how: "fork" | "load" | "new" | "resume";
  readonly chapter: number;
  readonly context: "none" | "proven" | "unproven";
  readonly prompt: number;
  readonly reason?: string;
  readonly run?: number;
  readonly tools_url?: string;
  readonly steers?: boolean;
  readonly version_before?: string;
}

export interface AgentChosen {
  readonly kind: "AgentChosen";
  readonly profile: string;
  readonly model: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface AgentList {
  readonly agents: KnownAgent[];
}

export interface AgentPlanned {
  readonly kind: "AgentPlanned";
  readonly turn: number;
  readonly entries: PlanEntry[];
}

export interface AgentProcess {
  readonly session: string;
  readonly env?: Record<string, string>;
  readonly variables?: string[];
  readonly piped?: boolean;
  readonly card?: string;
  readonly run?: number;
}

export interface AgentSession {
  readonly id: string;
  readonly title: string;
  readonly cwd: string;
  readonly changed_at: number;
  readonly size: number;
  readonly session: string;
}

export interface AgentSessions {
  readonly agent: string;
  readonly directory: string;
  readonly sessions: AgentSession[];
}

export interface AnswerWait {
  readonly command?: "AnswerWait";
  readonly wait: string;
  readonly answer: string;
  readonly note?: string;
}

export interface ArchiveBoard {
  readonly command?: "ArchiveBoard";
}

export interface ArchiveCard {
  readonly command?: "ArchiveCard";
}

export interface ArchiveSession {
  readonly command?: "ArchiveSession";
  readonly running?: "keep" | "stop" | null;
}

export interface AskedField {
  readonly name: string;
  readonly kind: "boolean" | "choice" | "choices" | "integer" | "number" | "text";
  readonly text: string;
  readonly options?: Record<string, string>;
  readonly details?: string[];
  readonly required?: boolean;
  readonly other?: string;
  readonly minimum?: number | null;
  readonly maximum?: number | null;
}

export interface AwaySummary {
  readonly after: number;
  readonly version: number;
  readonly messages: number;
  readonly first: number | null;
  readonly since: number;
  readonly looked_at?: number;
  readonly tool_calls: number;
  readonly tasks: EndedTasks;
  readonly questions: number;
  readonly failures: number;
}

export interface BlockCard {
  readonly command?: "BlockCard";
  readonly reason: string;
  readonly kind?: "capability" | "dependency" | "needs_input" | "transient";
}

export interface Blocker {
  readonly by: "process" | "question" | "queue" | "turn";
  readonly reason: string;
  readonly task?: string;
  readonly pid?: number | null;
  readonly command?: string;
  readonly age_ms?: number | null;
  readonly activity?: string;
  readonly evidence?: string;
}

export interface BoardAccepted {
  readonly board: string;
  readonly version: number;
  readonly seq: number;
  readonly duplicate: boolean;
}

export interface BoardArchived {
  readonly kind: "BoardArchived";
  readonly board: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface BoardCreated {
  readonly kind: "BoardCreated";
  readonly board: string;
  readonly title: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface BoardList {
  readonly boards: BoardView[];
}

export interface BoardPaused {
  readonly kind: "BoardPaused";
  readonly board: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface BoardResumed {
  readonly kind: "BoardResumed";
  readonly board: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface BoardView {
  readonly id: string;
  readonly title: string;
  readonly paused_by: string;
  readonly archived: boolean;
  readonly created_at: number;
  readonly cards: number;
}

export interface Build {
  readonly version: string;
  readonly build: string;
}

export interface Call {
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
}

export interface CardAccepted {
  readonly card: string;
  readonly number: number;
  readonly stream: string;
  readonly version: number;
  readonly seq: number;
  readonly duplicate: boolean;
  readonly kept?: string;
}

export interface CardBlocked {
  readonly kind: "CardBlocked";
  readonly card: string;
  readonly block_kind: "capability" | "dependency" | "needs_input" | "transient";
  readonly reason: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly run?: number;
}

export interface CardComment {
  readonly comment: string;
  readonly text: string;
  readonly by: string;
  readonly at: number;
  readonly version: number;
}

export interface CardCommented {
  readonly kind: "CardCommented";
  readonly card: string;
  readonly comment: string;
  readonly text: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface CardCompleted {
  readonly kind: "CardCompleted";
  readonly card: string;
  readonly summary: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly run?: number;
  readonly metadata?: Record<string, string>;
  readonly artifacts?: string[];
}

export interface CardContext {
  readonly card: string;
  readonly resumes: number;
  readonly session: string;
  readonly fresh_because: string;
  readonly refused: string;
  readonly note: string;
  readonly text: string;
}

export interface CardCreated {
  readonly kind: "CardCreated";
  readonly card: string;
  readonly board: string;
  readonly title: string;
  readonly body: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly status: "archived" | "blocked" | "done" | "ready" | "review" | "running" | "scheduled" | "todo" | "triage";
  readonly profile?: string;
  readonly workspace?: string;
  readonly priority?: number;
  readonly parents?: string[];
  readonly resume?: "auto" | "fresh" | "resume" | null;
  readonly max_runtime_ms?: number | null;
  readonly max_attempts?: number | null;
  readonly session?: string;
  readonly rights?: Rights | null;
  readonly number?: number;
  readonly tell?: "always" | "default" | "never";
  readonly node?: string;
}

export interface CardDetail {
  readonly card: CardView;
  readonly body: string;
  readonly resume: string | null;
  readonly max_runtime_ms: number | null;
  readonly max_attempts: number | null;
  readonly attempts: number;
  readonly summary: string;
  readonly metadata: Record<string, string>;
  readonly artifacts: string[];
  readonly comments: CardComment[];
  readonly parents: CardView[];
  readonly children: CardView[];
  readonly followers: string[];
  readonly runs: RunView[];
  readonly why: string;
  readonly kept?: string;
  readonly limits: string[];
}

export interface CardEdited {
  readonly kind: "CardEdited";
  readonly card: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly title?: string | null;
  readonly body?: string | null;
  readonly profile?: string | null;
  readonly workspace?: string | null;
  readonly priority?: number | null;
  readonly resume?: "auto" | "fresh" | "resume" | null;
  readonly max_runtime_ms?: number | null;
  readonly max_attempts?: number | null;
  readonly tell?: "always" | "default" | "never" | null;
  readonly node?: string | null;
}

export interface CardFollowed {
  readonly kind: "CardFollowed";
  readonly card: string;
  readonly session: string;
  readonly following: boolean;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface CardLinked {
  readonly kind: "CardLinked";
  readonly card: string;
  readonly parent: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface CardMoved {
  readonly kind: "CardMoved";
  readonly card: string;
  readonly status: "archived" | "blocked" | "done" | "ready" | "review" | "running" | "scheduled" | "todo" | "triage";
  readonly reason: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly at?: number | null;
}

export interface CardPage {
  readonly cards: CardView[];
  readonly next: number | null;
  readonly why?: Record<string, string>;
}

export interface CardReleased {
  readonly card: string;
  readonly kept: string;
}

export interface CardUnblocked {
  readonly kind: "CardUnblocked";
  readonly card: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly fresh?: boolean;
  readonly reason?: string;
}

export interface CardUnlinked {
  readonly kind: "CardUnlinked";
  readonly card: string;
  readonly parent: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface CardView {
  readonly id: string;
  readonly number: number;
  readonly board: string;
  readonly title: string;
  readonly profile: string;
  readonly workspace: string;
  readonly priority: number;
  readonly status: string;
  readonly reason: string;
  readonly block_kind: string;
  readonly scheduled_at: number | null;
  readonly again_at: number | null;
  readonly run: number;
  readonly session: string;
  readonly comments: number;
  readonly warning: string;
  readonly created_by: string;
  readonly created_at: number;
  readonly moved_at: number;
  readonly updated_at: number;
  readonly version: number;
  readonly tell?: string;
  readonly node?: string;
  readonly host?: string;
}

export interface ChapterItem {
  readonly item: "chapter";
  readonly chapter: number;
  readonly rule: "daily" | "idle" | "person";
  readonly reason: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly kept?: Survivor[];
  readonly stopped?: Survivor[];
  readonly hand_over?: string;
  readonly hand_over_from?: "" | "digest" | "model";
  readonly undone?: boolean;
  readonly version: number;
  readonly at: number;
}

export interface ChapterOpened {
  readonly kind: "ChapterOpened";
  readonly chapter: number;
  readonly rule: "daily" | "idle" | "person";
  readonly reason: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly due_at?: number | null;
  readonly kept?: Survivor[];
  readonly stopped?: Survivor[];
  readonly hand_over?: string;
  readonly hand_over_from?: "" | "digest" | "model";
  readonly notify?: boolean;
}

export interface ChapterRejoined {
  readonly kind: "ChapterRejoined";
  readonly chapter: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly since?: number;
}

export interface ChapterView {
  readonly chapter: number;
  readonly after_turn: number;
  readonly version: number;
  readonly opened_at: number | null;
  readonly rule: string | null;
  readonly reason: string;
  readonly unseen: boolean;
  readonly summary: string | null;
  readonly compacting: boolean;
}

export interface ChooseAgent {
  readonly command?: "ChooseAgent";
  readonly profile?: string | null;
  readonly model?: string | null;
}

export interface ChooseMode {
  readonly command?: "ChooseMode";
  readonly mode: "ask" | "profile" | "read";
}

export interface ChooseNode {
  readonly command?: "ChooseNode";
  readonly node: string;
}

export interface CommandExited {
  readonly type: "exited";
  readonly code: number;
  readonly evidence?: string;
}

export interface CommandKilled {
  readonly type: "killed";
  readonly signal: string;
  readonly evidence?: string;
}

export interface CommandLost {
  readonly type: "lost";
  readonly evidence: string;
}

export interface CommandNeverStarted {
  readonly type: "never_started";
  readonly cause: string;
  readonly hint?: string;
}

export interface CommentCard {
  readonly command?: "CommentCard";
  readonly text: string;
}

export interface CompactSession {
  readonly command?: "CompactSession";
  readonly instructions?: string;
}

export interface CompleteCard {
  readonly command?: "CompleteCard";
  readonly summary?: string;
}

export interface ContextMessage {
  readonly role: string;
  readonly turn: number;
  readonly text: string;
  readonly characters: number;
}

export interface CreateBoard {
  readonly command?: "CreateBoard";
  readonly board: string;
  readonly title?: string | null;
}

export interface CreateCard {
  readonly command?: "CreateCard";
  readonly title: string;
  readonly body?: string;
  readonly board?: string;
  readonly profile?: string | null;
  readonly workspace?: string;
  readonly priority?: number;
  readonly parents?: string[];
  readonly resume?: "auto" | "fresh" | "resume" | null;
  readonly max_runtime_ms?: number | null;
  readonly max_attempts?: number | null;
  readonly triage?: boolean;
  readonly at?: number | null;
  readonly after_ms?: number | null;
  readonly session?: string | null;
  readonly tell?: "always" | "default" | "never";
  readonly node?: string;
}

export interface CreateSession {
  readonly command?: "CreateSession";
  readonly text?: string | null;
  readonly profile?: string | null;
  readonly model?: string | null;
  readonly cwd?: string | null;
  readonly title?: string | null;
  readonly mode?: "ask" | "profile" | "read";
  readonly node?: string;
}

export interface Delegated {
  readonly type: "delegated";
  readonly task: string;
}

export interface DeleteSession {
  readonly command?: "DeleteSession";
  readonly running?: "keep" | "stop" | null;
}

export interface DeliveryList {
  readonly deliveries: DeliveryView[];
}

export interface DeliveryView {
  readonly id: string;
  readonly destination: string;
  readonly kind: string;
  readonly at: number;
  readonly title: string;
  readonly summary: string;
  readonly link: string;
  readonly state: string;
  readonly attempts: number;
  readonly due_at: number;
  readonly changed_at: number;
  readonly reason: string;
  readonly settled: string;
}

export interface Delta {
  readonly turn: number;
  readonly step: number;
  readonly offset: number;
  readonly text: string;
  readonly thinking_offset: number;
  readonly thinking: string;
}

export interface DestinationList {
  readonly destinations: DestinationView[];
}

export interface DestinationView {
  readonly name: string;
  readonly on: string[];
  readonly only_when_nobody_looks: boolean;
  readonly details: boolean;
  readonly home_channel: boolean;
  readonly pending: number;
  readonly problem: string;
  readonly label?: string;
  readonly sent_at?: number;
  readonly given_up?: number;
  readonly ended?: boolean;
}

export interface DetachTurn {
  readonly command?: "DetachTurn";
}

export interface DetectedModel {
  readonly provider: string;
  readonly how: string;
  readonly models: string[];
}

export interface DeviceList {
  readonly devices: DeviceView[];
}

export interface DeviceView {
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
  readonly seen_at: number;
  readonly current: boolean;
  readonly connected: number;
}

export interface DiskUse {
  readonly database: number;
  readonly output: number;
  readonly free: number;
}

export interface DismissFailure {
  readonly command?: "DismissFailure";
}

export interface DriverOutputRead {
  readonly kind: "DriverOutputRead";
  readonly task: string;
  readonly offset: number;
  readonly owed: OwedRequest[];
  readonly prompt?: number;
  readonly steering?: string[];
  readonly used?: Usage | null;
}

export interface EditCard {
  readonly command?: "EditCard";
  readonly title?: string | null;
  readonly body?: string | null;
  readonly profile?: string | null;
  readonly workspace?: string | null;
  readonly priority?: number | null;
  readonly resume?: "auto" | "fresh" | "resume" | null;
  readonly max_runtime_ms?: number | null;
  readonly max_attempts?: number | null;
  readonly tell?: "always" | "default" | "never" | null;
  readonly node?: string | null;
}

export interface EditProfile {
  readonly model?: string | null;
  readonly instructions?: string | null;
  readonly cwd?: string | null;
  readonly tools?: Record<string, "allow" | "ask" | "deny"> | null;
}

export interface EditSettings {
  readonly default_profile?: string | null;
  readonly session_reset?: ResetChoice | null;
  readonly retention?: RetentionChoice | null;
}

export interface EndedTasks {
  readonly done: number;
  readonly failed: number;
  readonly stopped: number;
  readonly lost: number;
}

export interface ApiError {
  readonly error: ErrorDetail;
}

export interface ErrorDetail {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

export interface EventPage {
  readonly events: LogRecord[];
  readonly cursor: number;
  readonly more: boolean;
}

export interface FailureDismissed {
  readonly kind: "FailureDismissed";
  readonly turn: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface FileChange {
  readonly path: string;
  readonly change: string;
  readonly added: number | null;
  readonly removed: number | null;
}

export interface FileChanges {
  readonly compared_with: string;
  readonly files: FileChange[];
  readonly diff: string;
  readonly left_out: string;
}

export interface Findings {
  readonly ok: boolean;
  readonly at: number;
  readonly findings: HealthFinding[];
}

export interface FollowCard {
  readonly command?: "FollowCard";
  readonly session: string;
  readonly following?: boolean;
}

export interface ForRun {
  readonly type: "for_run";
}

export interface ForkSession {
  readonly command?: "ForkSession";
  readonly version?: number | null;
  readonly title?: string | null;
}

export interface Forked {
  readonly type: "forked";
  readonly parent: string;
  readonly version: number;
  readonly workspace_of?: string;
}

export interface GatewayStarted {
  readonly kind: "GatewayStarted";
  readonly pid: number;
  readonly version: string;
  readonly boot: string;
  readonly version_before?: string;
  readonly node?: string;
}

export interface GatewayStopped {
  readonly kind: "GatewayStopped";
  readonly pid: number;
  readonly reason: string;
  readonly node?: string;
}

export interface Grant {
  readonly scope: "call" | "profile" | "session";
  readonly rule?: string;
}

export interface Health {
  readonly status: string;
  readonly version: string;
  readonly pid: number;
  readonly problem: string;
  readonly parts?: PartHealth[];
}

export interface HealthFinding {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly hint: string;
}

export interface Inbox {
  readonly entries: InboxEntry[];
  readonly total: number;
  readonly waits: WaitView[];
}

export interface InboxEntry {
  readonly kind: string;
  readonly id: string;
  readonly title: string;
  readonly what: string;
  readonly since: number;
  readonly commands: string[];
  readonly link: string;
  readonly stream: string;
  readonly version: number;
  readonly session: string;
  readonly number?: number;
  readonly node?: string;
}

export interface InputReceived {
  readonly kind: "InputReceived";
  readonly input: string;
  readonly text: string;
  readonly mode: "interrupt" | "queue" | "steer";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly source?: "comment" | "message" | "reminder" | "run" | "task";
  readonly ref?: string;
}

export interface InputRevised {
  readonly kind: "InputRevised";
  readonly input: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly text?: string | null;
  readonly mode?: "interrupt" | "queue" | "steer" | null;
  readonly place?: number | null;
  readonly reason?: string;
}

export interface InputWithdrawn {
  readonly kind: "InputWithdrawn";
  readonly input: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface InputsJoined {
  readonly kind: "InputsJoined";
  readonly turn: number;
  readonly inputs: string[];
  readonly by_person?: boolean;
}

export interface KnownAgent {
  readonly name: string;
  readonly title: string;
  readonly program: string;
  readonly version: string;
  readonly profiles: string[];
  readonly install: string;
  readonly login: string;
}

export interface LinkCard {
  readonly command?: "LinkCard";
  readonly parent: string;
}

export interface LogIn {
  readonly code: string;
  readonly name?: string | null;
}

export interface LoggedIn {
  readonly device: string;
  readonly name: string;
}

export interface Looked {
  readonly for_ms: number;
}

export interface Looking {
  readonly streams: string[];
}

export interface MessageItem {
  readonly item: "message";
  readonly input: string;
  readonly text: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly mode: "interrupt" | "queue" | "steer";
  readonly source: "comment" | "message" | "reminder" | "run" | "task";
  readonly ref?: string;
  readonly state?: "joined" | "queued" | "taken" | "withdrawn";
  readonly turn?: number;
  readonly revisions?: InputRevised[];
  readonly withdrawn_by?: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor | null;
  readonly version: number;
  readonly at: number;
}

export interface ModeChosen {
  readonly kind: "ModeChosen";
  readonly mode: "ask" | "profile" | "read";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface ModelContext {
  readonly model: string;
  readonly instructions: string;
  readonly tools: string[];
  readonly messages: ContextMessage[];
  readonly characters: number;
  readonly tokens: number;
  readonly used: number;
  readonly counted?: boolean;
  readonly threshold: number;
  readonly limit: number;
  readonly limit_source: string;
  readonly chapter: number;
  readonly covers: number;
  readonly summary: string | null;
  readonly window: number | null;
}

export interface ModelFailed {
  readonly kind: "ModelFailed";
  readonly turn: number;
  readonly step: number;
  readonly problem: Problem;
  readonly text?: string;
}

export interface ModelInterrupted {
  readonly kind: "ModelInterrupted";
  readonly turn: number;
  readonly step: number;
  readonly text: string;
  readonly thinking: string;
  readonly reason: string;
}

export interface ModelList {
  readonly detected: DetectedModel[];
}

export interface ModelRequested {
  readonly kind: "ModelRequested";
  readonly turn: number;
  readonly step: number;
  readonly attempt: number;
  readonly model: string;
  readonly context_version: number;
  readonly fixed_tokens?: number;
}

export interface ModelResponded {
  readonly kind: "ModelResponded";
  readonly turn: number;
  readonly step: number;
  readonly text: string;
  readonly thinking: string;
  readonly calls: Call[];
  readonly finish_reason: "length" | "other" | "stop" | "tool_calls";
  readonly usage: Usage;
  readonly duration_ms: number;
  readonly signature?: string;
  readonly thinking_ms?: number;
}

export interface MoveCard {
  readonly command?: "MoveCard";
  readonly status: "archived" | "blocked" | "done" | "ready" | "review" | "running" | "scheduled" | "todo" | "triage";
  readonly at?: number | null;
}

export interface NewProfile {
  readonly name: string;
  readonly model: string;
  readonly instructions?: string | null;
  readonly cwd?: string | null;
  readonly tools?: Record<string, "allow" | "ask" | "deny"> | null;
}

export interface NodeChanged {
  readonly name: string;
  readonly lost_tasks?: string[];
}

export interface NodeChosen {
  readonly kind: "NodeChosen";
  readonly node: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface NodeDrained {
  readonly kind: "NodeDrained";
  readonly node: string;
}

export interface NodeEnded {
  readonly kind: "NodeEnded";
  readonly node: string;
  readonly reason: string;
  readonly heard_at?: number;
}

export interface NodeList {
  readonly nodes: NodeView[];
}

export interface NodeView {
  readonly name: string;
  readonly state: string;
  readonly here: boolean;
  readonly labels?: string[];
  readonly version: string;
  readonly started_at: number;
  readonly heard_at: number;
  readonly silent_ms: number;
  readonly ended_at: number | null;
  readonly ended_reason: string;
  readonly sessions: string[];
  readonly duties: string[];
  readonly tasks: string[];
}

export interface NoteItem {
  readonly item: "note";
  readonly text: string;
  readonly task: string;
  readonly input?: string;
  readonly state?: "joined" | "queued" | "taken" | "withdrawn";
  readonly turn?: number;
  readonly revisions?: InputRevised[];
  readonly withdrawn_by?: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor | null;
  readonly version: number;
  readonly at: number;
}

export interface NoteReceived {
  readonly kind: "NoteReceived";
  readonly text: string;
  readonly task: string;
}

export interface NoticeItem {
  readonly item: "notice";
  readonly event: SessionCreated | SessionRenamed | SessionArchived | SessionRestored | SessionPinned | SessionTellSet | SessionAdopted | AgentAttached | AgentChosen | ModeChosen | NodeChosen | AgentPlanned | FailureDismissed | StopRequested | TurnBackgrounded | TurnSuspended | TurnResumed | TurnUndone | RunBound | RunReleased | ResetPolicySet | ResetPostponed | ChapterRejoined | ToolResultsTrimmed | SummaryRequested | SummaryFailed;
  readonly version: number;
  readonly at: number;
}

export interface OutputGap {
  readonly start: number;
  readonly end: number;
}

export interface OutputHit {
  readonly task: string;
  readonly title: string;
  readonly at: number;
  readonly snippet: string;
}

export interface OutputHits {
  readonly hits: OutputHit[];
}

export interface OutputMatch {
  readonly offset: number;
  readonly end: number;
  readonly line: number | null;
  readonly before: string;
  readonly text: string;
  readonly after: string;
}

export interface OutputMatches {
  readonly matches: OutputMatch[];
  readonly next: number;
  readonly more: boolean;
  readonly size: number;
  readonly state: string;
  readonly dropped: OutputGap | null;
}

export interface OutputPage {
  readonly offset: number;
  readonly next: number;
  readonly size: number;
  readonly state: string;
  readonly dropped: OutputGap | null;
  readonly text: string;
}

export interface Overview {
  readonly step_ms: number;
  readonly slots: WorkSlot[];
  readonly tasks: TaskCount[];
  readonly spend: Spend;
  readonly disk: DiskUse;
}

export interface OwedRequest {
  readonly id: string;
  readonly call: string;
  readonly reason: string;
  readonly options: Record<string, string>;
  readonly refusals?: string[];
  readonly answer?: string;
  readonly is_form?: boolean;
  readonly fields?: AskedField[];
  readonly until?: number | null;
}

export interface OwnDevice {
  readonly device: DeviceView;
  readonly last_session: string;
  readonly cursors: Record<string, number>;
  readonly looked_at: number;
}

export interface PairPerson {
  readonly code: string;
  readonly approve?: boolean;
}

export interface PartHealth {
  readonly name: string;
  readonly problem: string;
  readonly since: number;
  readonly restarts: number;
}

export interface PauseBoard {
  readonly command?: "PauseBoard";
}

export interface PersonActor {
  readonly type: "person";
  readonly client: string;
  readonly device?: string;
}

export interface PinSession {
  readonly command?: "PinSession";
  readonly pinned?: boolean;
}

export interface PinTask {
  readonly command?: "PinTask";
  readonly pinned?: boolean;
}

export interface PlanEntry {
  readonly text: string;
  readonly state: "completed" | "in_progress" | "pending";
}

export interface Problem {
  readonly code: "agent_failed" | "agent_login" | "agent_missing" | "agent_unfit" | "bad_answer" | "context_too_long" | "cut_by_length" | "demo_crashed" | "demo_failed" | "internal" | "interrupted" | "network" | "no_answer" | "no_key" | "provider_down" | "quota" | "rate_limit" | "refused" | "rejected" | "step_limit" | "summary_empty" | "summary_timeout" | "time_limit" | "token_limit" | "unknown_driver" | "unknown_model" | "unknown_profile" | "wrong_key";
  readonly message: string;
  readonly hint?: string;
  readonly after_ms?: number | null;
}

export interface ProcessStarted {
  readonly kind: "ProcessStarted";
  readonly task: string;
  readonly pid: number;
}

export interface ProfileList {
  readonly profiles: ProfileView[];
  readonly problem: string;
  readonly cwd?: string;
}

export interface ProfileView {
  readonly name: string;
  readonly model: string;
  readonly cwd: string;
  readonly instructions: string;
  readonly tools: Record<string, string>;
  readonly mcp: string[];
  readonly max_steps: number;
  readonly max_tokens: number;
  readonly max_minutes: number;
  readonly origin: string;
  readonly default: boolean;
  readonly sandbox: string;
  readonly key_name?: string;
  readonly key_set?: boolean;
  readonly agent?: string;
}

export interface PruneResult {
  readonly pruned: boolean;
  readonly count: number;
  readonly bytes: number;
  readonly tasks: TaskView[];
}

export interface PruneTasks {
  readonly command?: "PruneTasks";
  readonly older_than_ms?: number | null;
  readonly larger_than?: number | null;
  readonly keep_last?: number | null;
  readonly state?: "done" | "failed" | "lost" | "stopped" | null;
  readonly confirm?: boolean;
}

export interface PushKeys {
  readonly p256dh: string;
  readonly auth: string;
}

export interface PushState {
  readonly key: string;
  readonly subscription: PushView | null;
}

export interface PushSubscribe {
  readonly endpoint: string;
  readonly keys: PushKeys;
  readonly on?: ("approval" | "blocked" | "disk_full" | "done" | "failed" | "question" | "reset" | "stale" | "stalled" | "upgrade")[] | null;
  readonly only_when_nobody_looks?: boolean | null;
  readonly details?: boolean | null;
}

export interface PushView {
  readonly destination: string;
  readonly service: string;
  readonly on: string[];
  readonly only_when_nobody_looks: boolean;
  readonly details: boolean;
  readonly changed_at: number;
  readonly ended: string;
}

export interface QueueEdit {
  readonly text?: string | null;
  readonly mode?: "interrupt" | "queue" | "steer" | null;
  readonly place?: number | null;
}

export interface QueuedMessage {
  readonly version: number;
  readonly input: string;
  readonly text: string;
  readonly mode: string;
  readonly by: string;
  readonly source: string;
  readonly at: number;
}

export interface ReadPosition {
  readonly session: string;
  readonly version: number;
}

export interface Readiness {
  readonly status: string;
}

export interface LogRecord {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly at: number;
  readonly event: ModelResponded | ToolCallFinished | InputReceived | ToolCallStarted | ModelRequested | TurnStarted | TurnFinished | InputsJoined | ModelInterrupted | ModelFailed | TurnSuspended | TurnResumed | WaitOpened | WaitAnswered | StopRequested | NoteReceived | TurnBackgrounded | TurnUndone | AgentChosen | ModeChosen | NodeChosen | FailureDismissed | SessionCreated | SessionRenamed | SessionArchived | SessionRestored | SessionPinned | SessionTellSet | InputRevised | InputWithdrawn | ResetPolicySet | ResetPostponed | ChapterOpened | ChapterRejoined | ToolResultsTrimmed | SummaryRequested | SummaryStarted | SummaryWritten | SummaryFailed | AgentAttached | AgentPlanned | DriverOutputRead | SessionAdopted | RunBound | RunReleased | TaskStarted | ProcessStarted | TaskBackgrounded | TaskResumed | TaskLifetimeSet | TaskStopRequested | TaskPinned | TaskTellSet | TaskFinished | CardCreated | CardEdited | CardCommented | CardLinked | CardUnlinked | CardFollowed | CardMoved | CardBlocked | CardUnblocked | CardCompleted | RunAssigned | RunStarted | RunReminded | RunHeartbeat | RunFinished | BoardCreated | BoardPaused | BoardResumed | BoardArchived | GatewayStarted | GatewayStopped | NodeDrained | NodeEnded | SessionDeleted | StaleListed | TaskPruned;
}

export interface RemovePerson {
  readonly person: number;
}

export interface RenameDevice {
  readonly name: string;
}

export interface RenameSession {
  readonly command?: "RenameSession";
  readonly title: string;
}

export interface RepeatTurn {
  readonly command?: "RepeatTurn";
  readonly turn?: number | null;
  readonly text?: string | null;
}

export interface ReplaceSharedSettings {
  readonly text: string;
  readonly version: number;
}

export interface RerunTask {
  readonly command?: "RerunTask";
  readonly env?: Record<string, string> | null;
}

export interface ResetChoice {
  readonly mode: "both" | "daily" | "idle" | "none";
  readonly idle_minutes: number;
  readonly at_hour: number;
}

export interface ResetOutlook {
  readonly rules: ResetRulesView;
  readonly policy: ResetPolicy | null;
  readonly origins: Record<string, string>;
  readonly next_rule: string | null;
  readonly next_at: number | null;
  readonly postponed: ResetPostponed | null;
  readonly chapter: ChapterView;
  readonly running: RunningTaskView[];
}

export interface ResetPolicy {
  readonly mode?: "both" | "daily" | "idle" | "none" | null;
  readonly idle_minutes?: number | null;
  readonly at_hour?: number | null;
  readonly timezone?: string | null;
  readonly max_postpone?: string | null;
  readonly process_max_age?: string | null;
  readonly on_live_process?: "hand_over" | "stop" | "stop_idle" | null;
  readonly hand_over_note?: boolean | null;
  readonly notify?: boolean | null;
}

export interface ResetPolicySet {
  readonly kind: "ResetPolicySet";
  readonly policy: ResetPolicy;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface ResetPostponed {
  readonly kind: "ResetPostponed";
  readonly rule: "daily" | "idle" | "person";
  readonly due_at: number;
  readonly until: number | null;
  readonly next_check: number;
  readonly blockers: Blocker[];
}

export interface ResetRulesView {
  readonly mode: string;
  readonly idle_ms: number;
  readonly at_hour: number;
  readonly timezone: string;
  readonly max_postpone_ms: number;
  readonly process_max_age_ms: number;
  readonly on_live_process: string;
  readonly hand_over_note: boolean;
  readonly notify: boolean;
}

export interface ResetSession {
  readonly command?: "ResetSession";
  readonly running?: "keep" | "stop" | null;
  readonly note?: boolean;
}

export interface ResetView {
  readonly mode: string;
  readonly idle_minutes: number;
  readonly at_hour: number;
}

export interface Restart {
  readonly env?: Record<string, string>;
}

export interface RestoreSession {
  readonly command?: "RestoreSession";
}

export interface ResumeBoard {
  readonly command?: "ResumeBoard";
}

export interface RetentionChoice {
  readonly tasks_days: number;
  readonly tasks_count: number;
  readonly tasks_megabytes: number;
  readonly sessions_archive_days: number;
  readonly sessions_delete_days: number;
}

export interface RetentionEffect {
  readonly rule: string;
  readonly count: number;
  readonly bytes: number;
  readonly tasks: TaskView[];
}

export interface RetentionSessions {
  readonly rule: string;
  readonly count: number;
  readonly titles: string[];
}

export interface RetentionView {
  readonly tasks_days: number;
  readonly tasks_count: number;
  readonly tasks_megabytes: number;
  readonly sessions_archive_days: number;
  readonly sessions_delete_days: number;
  readonly pruned: boolean;
  readonly count: number;
  readonly bytes: number;
  readonly rules: RetentionEffect[];
  readonly sessions: RetentionSessions[];
}

export interface RetryCard {
  readonly command?: "RetryCard";
  readonly text?: string | null;
  readonly fresh?: boolean;
}

export interface Reviewed {
  readonly looked_at: number;
}

export interface ReviseInput {
  readonly command?: "ReviseInput";
  readonly input: string;
  readonly text?: string | null;
  readonly mode?: "interrupt" | "queue" | "steer" | null;
  readonly place?: number | null;
}

export interface Rights {
  readonly layers?: RightsLayer[];
  readonly ancestors?: string[];
}

export interface RightsLayer {
  readonly profile: string;
  readonly rules: Record<string, "allow" | "ask" | "deny">;
  readonly paths: string[];
  readonly mcp?: string[];
  readonly sandbox?: "auto" | "off" | "on";
  readonly network?: boolean;
  readonly mode?: "ask" | "profile" | "read";
}

export interface RunActor {
  readonly type: "run";
  readonly card: string;
  readonly run: number;
  readonly card_number?: number;
}

export interface RunAssigned {
  readonly kind: "RunAssigned";
  readonly card: string;
  readonly node: string;
}

export interface RunBound {
  readonly kind: "RunBound";
  readonly card: string;
  readonly run: number;
  readonly cwd?: string;
  readonly rights?: Rights | null;
  readonly card_number?: number;
  readonly must_remember?: boolean;
}

export interface RunEnded {
  readonly type: "run_ended";
  readonly card: string;
  readonly run: number;
  readonly card_number?: number;
}

export interface RunFinished {
  readonly kind: "RunFinished";
  readonly card: string;
  readonly run: number;
  readonly outcome: "blocked" | "done" | "failed" | "lost" | "stopped";
  readonly reason: string;
  readonly failure?: "" | "budget" | "crash" | "frozen" | "left_without_a_word" | "lost" | "network" | "provider" | "quota" | "timeout";
  readonly uses_attempt?: boolean;
  readonly progress?: boolean;
  readonly retry_at?: number | null;
  readonly until_turn?: number;
  readonly unread_comments?: string[];
}

export interface RunHeartbeat {
  readonly kind: "RunHeartbeat";
  readonly card: string;
  readonly run: number;
  readonly note: string;
}

export interface RunReleased {
  readonly kind: "RunReleased";
  readonly card: string;
  readonly run: number;
  readonly card_number?: number;
}

export interface RunReminded {
  readonly kind: "RunReminded";
  readonly card: string;
  readonly run: number;
}

export interface RunStarted {
  readonly kind: "RunStarted";
  readonly card: string;
  readonly run: number;
  readonly session: string;
  readonly task: string;
  readonly profile: string;
  readonly resumed_run: number;
  readonly after_turn: number;
  readonly workspace: string;
  readonly workspace_state: string;
  readonly fresh_reason?: string;
  readonly driver?: string;
  readonly node?: string;
  readonly rights?: Rights | null;
}

export interface RunView {
  readonly run: number;
  readonly session: string;
  readonly task: string;
  readonly profile: string;
  readonly resumes: number;
  readonly fresh_because: string;
  readonly workspace: string;
  readonly after_turn: number;
  readonly until_turn: number | null;
  readonly outcome: string;
  readonly failure: string;
  readonly reason: string;
  readonly counts: boolean;
  readonly note: string;
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly node?: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
}

export interface RunningTaskView {
  readonly task: string;
  readonly kind: string;
  readonly title: string;
  readonly command: string;
  readonly pid: number | null;
  readonly activity: string;
  readonly evidence: string;
  readonly age_ms: number;
  readonly lifetime: string;
}

export interface SandboxSpec {
  readonly writable: string[];
  readonly read_only?: string[];
  readonly opened?: string[];
  readonly network?: boolean;
  readonly tmp?: string;
}

export interface SearchHit {
  readonly session: string;
  readonly title: string;
  readonly version: number;
  readonly at: number;
  readonly role: string;
  readonly snippet: string;
}

export interface SearchPage {
  readonly hits: SearchHit[];
}

export interface SendMessage {
  readonly command?: "SendMessage";
  readonly text: string;
  readonly mode?: "interrupt" | "queue" | "steer";
}

export interface ServiceActor {
  readonly type: "service";
  readonly name: "board" | "clock" | "reset clock" | "retention" | "runtime";
  readonly rule?: string;
  readonly asked_by?: PersonActor | null;
}

export interface SessionAdopted {
  readonly kind: "SessionAdopted";
  readonly agent: string;
  readonly remote: string;
  readonly file: string;
  readonly turns: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly left_out?: number;
  readonly unreadable?: number;
  readonly used?: Usage | null;
}

export interface SessionArchived {
  readonly kind: "SessionArchived";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionCreated {
  readonly kind: "SessionCreated";
  readonly session: string;
  readonly profile: string;
  readonly cwd: string;
  readonly title: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly origin?: Started | Forked | Delegated | ForRun;
  readonly rights?: Rights | null;
  readonly driver?: string;
  readonly node?: string;
  readonly chat?: string;
  readonly mode?: "ask" | "profile" | "read";
}

export interface SessionDeleted {
  readonly kind: "SessionDeleted";
  readonly session: string;
  readonly title: string;
  readonly events: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionDetail {
  readonly session: SessionView;
  readonly turns: TurnView[];
  readonly queue: QueuedMessage[];
  readonly mode?: string;
  readonly node?: string;
  readonly inherited_mode?: string;
}

export interface SessionPage {
  readonly sessions: SessionView[];
  readonly next: string | null;
}

export interface SessionPinned {
  readonly kind: "SessionPinned";
  readonly pinned: boolean;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionRenamed {
  readonly kind: "SessionRenamed";
  readonly title: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionRestored {
  readonly kind: "SessionRestored";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionTellSet {
  readonly kind: "SessionTellSet";
  readonly tell: "always" | "default" | "never";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface SessionView {
  readonly id: string;
  readonly title: string;
  readonly profile: string;
  readonly model: string;
  readonly cwd: string;
  readonly parent: string;
  readonly task: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly version: number;
  readonly archived: boolean;
  readonly message_count: number;
  readonly queued: number;
  readonly turn: number;
  readonly turn_state: string | null;
  readonly state: string;
  readonly preview: string;
  readonly pinned: boolean;
  readonly chapter: number;
  readonly tell?: string;
  readonly unread?: number;
  readonly kind?: string;
  readonly host?: string;
}

export interface SetResetPolicy {
  readonly command?: "SetResetPolicy";
  readonly policy: ResetPolicy;
  readonly merge?: boolean;
}

export interface SetSessionTell {
  readonly command?: "SetSessionTell";
  readonly tell: "always" | "default" | "never";
}

export interface SetTaskTell {
  readonly command?: "SetTaskTell";
  readonly tell: "always" | "default" | "never";
}

export interface SettingsView {
  readonly path: string;
  readonly default_profile: string;
  readonly session_reset: ResetView;
  readonly retention: RetentionChoice;
}

export interface SharedSettingsView {
  readonly version?: number;
  readonly text?: string;
  readonly changed_by?: string;
  readonly changed_at?: number;
}

export interface ShownArgument {
  readonly name: string;
  readonly value: string;
  readonly left_out?: number;
  readonly usual?: boolean;
}

export interface ShuttingDown {
  readonly pid: number;
}

export interface SignInCode {
  readonly code: string;
  readonly expires_at: number;
  readonly urls?: string[];
}

export interface Spend {
  readonly cost: number;
  readonly tokens: number;
  readonly unpriced: number;
}

export interface StaleListed {
  readonly kind: "StaleListed";
  readonly tasks: string[];
  readonly reasons: string[];
}

export interface StartAgent {
  readonly command?: "StartAgent";
  readonly prompt: string;
  readonly profile?: string | null;
  readonly cwd?: string | null;
  readonly title?: string | null;
  readonly session?: string | null;
  readonly mode?: "ask" | "profile" | "read";
  readonly node?: string;
  readonly notify?: boolean;
  readonly tell?: "always" | "default" | "never";
}

export interface StartCommand {
  readonly command?: "StartCommand";
  readonly shell?: string | null;
  readonly argv?: string[] | null;
  readonly name?: string | null;
  readonly cwd?: string | null;
  readonly env?: Record<string, string> | null;
  readonly lifetime?: "chapter" | "persist" | "session" | "until";
  readonly until?: number | null;
  readonly session?: string | null;
  readonly notify?: boolean;
  readonly stdin?: boolean;
  readonly tell?: "always" | "default" | "never";
  readonly node?: string;
}

export interface Started {
  readonly type: "started";
}

export interface Statement {
  readonly text: string;
  readonly stream: string;
  readonly version: number;
  readonly at: number;
}

export interface Status {
  readonly version: string;
  readonly pid: number;
  readonly home: string;
  readonly url: string;
  readonly started_at: number;
  readonly uptime_ms: number;
  readonly writable: boolean;
  readonly problem: string;
  readonly sessions: number;
  readonly archived: number;
  readonly messages: number;
  readonly events: number;
  readonly seq: number;
  readonly working: string[];
  readonly tasks: number;
  readonly inbox: Record<string, number>;
}

export interface StepItem {
  readonly item: "step";
  readonly turn: number;
  readonly step: number;
  readonly profile: string;
  readonly model: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: ToolCallView[];
  readonly state?: "cut" | "done" | "failed" | "live";
  readonly cut_reason?: string;
  readonly problem?: Problem | null;
  readonly finish?: "length" | "other" | "stop" | "tool_calls" | null;
  readonly usage?: Usage | null;
  readonly thinking_ms?: number;
  readonly ended_at?: number | null;
  readonly version: number;
  readonly at: number;
}

export interface StopCard {
  readonly command?: "StopCard";
  readonly reason?: string | null;
}

export interface StopRequested {
  readonly kind: "StopRequested";
  readonly turn: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface StopTask {
  readonly command?: "StopTask";
  readonly force?: boolean;
}

export interface StopTurn {
  readonly command?: "StopTurn";
  readonly turn?: number | null;
}

export interface SummaryFailed {
  readonly kind: "SummaryFailed";
  readonly covers_turn: number;
  readonly attempt: number;
  readonly problem: Problem;
  readonly retry_at: number | null;
  readonly purpose?: "compaction" | "hand_over";
  readonly covers_step?: number;
}

export interface SummaryItem {
  readonly item: "summary";
  readonly state: "done" | "failed" | "running";
  readonly covers_turn: number;
  readonly covers_step: number;
  readonly attempt?: number;
  readonly source?: "digest" | "model";
  readonly model?: string;
  readonly tokens_before?: number;
  readonly tokens_after?: number;
  readonly reason?: string;
  readonly summary?: string;
  readonly problem?: Problem | null;
  readonly retry_at?: number | null;
  readonly replaced?: boolean;
  readonly version: number;
  readonly at: number;
}

export interface SummaryRequested {
  readonly kind: "SummaryRequested";
  readonly instructions: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly purpose?: "compaction" | "hand_over";
}

export interface SummaryStarted {
  readonly kind: "SummaryStarted";
  readonly covers_turn: number;
  readonly attempt: number;
  readonly model: string;
  readonly tokens: number;
  readonly reason: string;
  readonly purpose?: "compaction" | "hand_over";
  readonly covers_step?: number;
}

export interface SummaryWritten {
  readonly kind: "SummaryWritten";
  readonly covers_turn: number;
  readonly summary: string;
  readonly source: "digest" | "model";
  readonly model: string;
  readonly tokens_before: number;
  readonly tokens_after: number;
  readonly reason: string;
  readonly usage?: Usage;
  readonly duration_ms?: number;
  readonly purpose?: "compaction" | "hand_over";
  readonly covers_step?: number;
  readonly left_out?: number;
}

export interface Survivor {
  readonly task: string;
  readonly title: string;
  readonly pid: number | null;
  readonly activity: string;
  readonly evidence: string;
  readonly age_ms: number;
  readonly rule: string;
}

export interface TaskAccepted {
  readonly task: string;
  readonly session: string;
  readonly stream: string;
  readonly version: number;
  readonly seq: number;
  readonly duplicate: boolean;
}

export interface TaskActor {
  readonly type: "task";
  readonly task: string;
}

export interface TaskBackgrounded {
  readonly kind: "TaskBackgrounded";
  readonly task: string;
  readonly reason: string;
}

export interface TaskCount {
  readonly state: string;
  readonly count: number;
  readonly bytes: number;
}

export interface TaskFinished {
  readonly kind: "TaskFinished";
  readonly task: string;
  readonly outcome: "done" | "failed" | "lost" | "stopped";
  readonly reason: string;
  readonly end: CommandExited | CommandKilled | CommandNeverStarted | CommandLost | TurnEnded | RunEnded;
  readonly ended_at?: number | null;
  readonly output_bytes?: number;
  readonly dropped_bytes?: number;
  readonly preview?: string;
  readonly output?: string | null;
  readonly summary?: string;
  readonly files?: string[] | null;
  readonly base_commit?: string;
  readonly survivors?: string[];
}

export interface TaskLifetimeSet {
  readonly kind: "TaskLifetimeSet";
  readonly task: string;
  readonly lifetime: "chapter" | "persist" | "session" | "until";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TaskPage {
  readonly tasks: TaskView[];
  readonly next: string | null;
}

export interface TaskPinned {
  readonly kind: "TaskPinned";
  readonly task: string;
  readonly pinned: boolean;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TaskPruned {
  readonly kind: "TaskPruned";
  readonly task: string;
  readonly title: string;
  readonly state: "done" | "failed" | "lost" | "running" | "stopped";
  readonly bytes: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TaskResumed {
  readonly kind: "TaskResumed";
  readonly task: string;
  readonly turn: number;
}

export interface TaskStarted {
  readonly kind: "TaskStarted";
  readonly task: string;
  readonly task_kind: "agent" | "card" | "process";
  readonly title: string;
  readonly command: string;
  readonly cwd: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly argv?: string[];
  readonly session?: string;
  readonly call?: string;
  readonly worker?: string;
  readonly foreground?: boolean;
  readonly lifetime?: "chapter" | "persist" | "session" | "until";
  readonly until?: number | null;
  readonly notify?: boolean;
  readonly stdin?: boolean;
  readonly head?: number | null;
  readonly tail?: number | null;
  readonly own_environment?: boolean;
  readonly node?: string;
  readonly left_by?: string;
  readonly sandbox?: SandboxSpec | null;
  readonly no_sandbox?: string;
  readonly tell?: "always" | "default" | "never";
  readonly agent?: AgentProcess | null;
}

export interface TaskStopRequested {
  readonly kind: "TaskStopRequested";
  readonly task: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly reason: string;
  readonly force: boolean;
}

export interface TaskTellSet {
  readonly kind: "TaskTellSet";
  readonly task: string;
  readonly tell: "always" | "default" | "never";
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TaskView {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly command: string;
  readonly argv: string[];
  readonly cwd: string;
  readonly state: string;
  readonly started_by: string;
  readonly session: string;
  readonly call: string;
  readonly worker: string;
  readonly foreground: boolean;
  readonly lifetime: string;
  readonly until: number | null;
  readonly notify: boolean;
  readonly pinned: boolean;
  readonly tell?: string;
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly duration_ms: number;
  readonly pid: number | null;
  readonly exit_code: number | null;
  readonly signal: string;
  readonly reason: string;
  readonly evidence: string;
  readonly ended_by: string;
  readonly output_bytes: number;
  readonly dropped_bytes: number;
  readonly preview: string;
  readonly summary: string;
  readonly files: string[] | null;
  readonly survivors: string[];
  readonly left_by: string;
  readonly ports: number[];
  readonly blocked: boolean;
  readonly card?: string;
  readonly card_number?: number;
  readonly board?: string;
  readonly activity: string;
  readonly activity_detail: string;
  readonly activity_evidence: string;
  readonly quiet_looks: number;
  readonly stale: string;
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly node?: string;
  readonly unknown_since?: number | null;
}

export interface TelegramPerson {
  readonly id: number;
  readonly name: string;
  readonly talks: boolean;
  readonly approves: boolean;
}

export interface TelegramStatus {
  readonly is_on: boolean;
  readonly bot: string;
  readonly problem: string;
  readonly since: number;
  readonly people: TelegramPerson[];
  readonly strangers: TelegramStranger[];
}

export interface TelegramStranger {
  readonly id: number;
  readonly name: string;
  readonly at: number;
}

export interface TestNotice {
  readonly destination: string;
}

export interface TestResult {
  readonly destination: string;
  readonly sent: boolean;
  readonly problem: string;
  readonly hint?: string;
}

export interface ToolCallFinished {
  readonly kind: "ToolCallFinished";
  readonly turn: number;
  readonly call: string;
  readonly tool: string;
  readonly outcome: "done" | "failed" | "unknown";
  readonly output: string;
  readonly duration_ms: number;
  readonly files?: string[];
  readonly task?: string;
  readonly exit_code?: number | null;
  readonly signal?: string;
  readonly stopped?: boolean;
  readonly running?: boolean;
}

export interface ToolCallStarted {
  readonly kind: "ToolCallStarted";
  readonly turn: number;
  readonly call: string;
  readonly tool: string;
  readonly effect: "idempotent" | "keyed" | "pure" | "unsafe";
}

export interface ToolCallView {
  readonly call: string;
  readonly tool: string;
  readonly arguments?: string;
  readonly state?: "done" | "failed" | "pending" | "running" | "started" | "stopped" | "unknown";
  readonly started_at?: number | null;
  readonly duration_ms?: number | null;
  readonly output?: string;
  readonly exit_code?: number | null;
  readonly signal?: string;
  readonly files?: string[];
  readonly task?: string;
}

export interface ToolResultsTrimmed {
  readonly kind: "ToolResultsTrimmed";
  readonly covers_turn: number;
  readonly covers_step: number;
  readonly above: number;
  readonly keep: number;
  readonly results: number;
  readonly tokens_before: number;
  readonly tokens_after: number;
  readonly reason: string;
}

export interface TurnBackgrounded {
  readonly kind: "TurnBackgrounded";
  readonly turn: number;
  readonly task: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TurnEndItem {
  readonly item: "turn_end";
  readonly turn: number;
  readonly outcome: "done" | "failed" | "stopped";
  readonly reason: string;
  readonly problem: Problem | null;
  readonly started_at: number;
  readonly model: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
  readonly undone?: boolean;
  readonly version: number;
  readonly at: number;
}

export interface TurnEnded {
  readonly type: "turn_ended";
  readonly session: string;
  readonly turn: number;
}

export interface TurnFinished {
  readonly kind: "TurnFinished";
  readonly turn: number;
  readonly outcome: "done" | "failed" | "stopped";
  readonly reason: string;
  readonly problem?: Problem | null;
}

export interface TurnResumed {
  readonly kind: "TurnResumed";
  readonly turn: number;
  readonly attempt: number;
  readonly interruption: "crash" | "node_lost" | "shutdown";
  readonly reason: string;
  readonly away_ms: number;
}

export interface TurnStarted {
  readonly kind: "TurnStarted";
  readonly turn: number;
  readonly inputs: string[];
  readonly profile: string;
  readonly by_person?: boolean;
}

export interface TurnSuspended {
  readonly kind: "TurnSuspended";
  readonly turn: number;
  readonly interruption: "crash" | "node_lost" | "shutdown";
  readonly reason: string;
}

export interface TurnUndone {
  readonly kind: "TurnUndone";
  readonly turn: number;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
}

export interface TurnView {
  readonly turn: number;
  readonly state: string;
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly steps: number;
  readonly resumes: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number | null;
  readonly reason: string;
}

export interface UnblockCard {
  readonly command?: "UnblockCard";
  readonly text?: string | null;
  readonly fresh?: boolean;
}

export interface UndoReset {
  readonly command?: "UndoReset";
}

export interface UndoTurn {
  readonly command?: "UndoTurn";
}

export interface UnlinkCard {
  readonly command?: "UnlinkCard";
  readonly parent: string;
}

export interface Unread {
  readonly mine?: UnreadCount;
  readonly worker?: UnreadCount;
  readonly background?: UnreadCount;
}

export interface UnreadCount {
  readonly sessions?: number;
  readonly messages?: number;
}

export interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cached_tokens?: number;
  readonly context_tokens?: number;
  readonly cost?: number | null;
}

export interface WaitAnswerView {
  readonly answer: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly at: number;
  readonly note?: string;
}

export interface WaitAnswered {
  readonly kind: "WaitAnswered";
  readonly turn: number;
  readonly wait: string;
  readonly answer: string;
  readonly by: PersonActor | AgentActor | RunActor | TaskActor | ServiceActor;
  readonly grant?: Grant | null;
  readonly note?: string;
  readonly call_digest?: string;
}

export interface WaitDetail {
  readonly wait: WaitView;
  readonly arguments: string;
}

export interface WaitItem {
  readonly item: "wait";
  readonly wait: string;
  readonly turn: number;
  readonly purpose: "approval" | "compaction" | "login" | "question" | "quota" | "resume" | "retry";
  readonly reason: string;
  readonly call?: string;
  readonly choices?: string[];
  readonly until?: number | null;
  readonly default?: string | null;
  readonly pattern?: string;
  readonly shown?: ShownArgument[];
  readonly means?: Record<string, string>;
  readonly answer?: WaitAnswerView | null;
  readonly version: number;
  readonly at: number;
}

export interface WaitOpened {
  readonly kind: "WaitOpened";
  readonly turn: number;
  readonly wait: string;
  readonly purpose: "approval" | "compaction" | "login" | "question" | "quota" | "resume" | "retry";
  readonly reason: string;
  readonly call?: string;
  readonly choices?: string[];
  readonly until?: number | null;
  readonly default?: string | null;
  readonly pattern?: string;
  readonly shown?: ShownArgument[];
  readonly call_digest?: string;
  readonly means?: Record<string, string>;
}

export interface WaitView {
  readonly id: string;
  readonly session: string;
  readonly title: string;
  readonly turn: number;
  readonly version: number;
  readonly purpose: string;
  readonly reason: string;
  readonly call: string;
  readonly choices: string[];
  readonly pattern: string;
  readonly until: number | null;
  readonly opened_at: number;
  readonly shown: ShownArgument[];
}

export interface Why {
  readonly subject: string;
  readonly sentences: Statement[];
}

export interface WithdrawInput {
  readonly command?: "WithdrawInput";
  readonly input: string;
}

export interface WorkSlot {
  readonly at: number;
  readonly turns: number;
  readonly tasks: number;
  readonly failed: number;
  readonly waits: number;
}

export interface WriteResult {
  readonly bytes: number;
  readonly of: number;
}

export interface WriteTask {
  readonly command?: "WriteTask";
  readonly text?: string;
  readonly close?: boolean;
}

export interface Routes {
  readonly "GET /healthz": { readonly takes: undefined; readonly gives: Health };
  readonly "GET /readyz": { readonly takes: undefined; readonly gives: Readiness };
  readonly "GET /v1/agents": { readonly takes: undefined; readonly gives: AgentList };
  readonly "POST /v1/agents/{agent}/adopt": { readonly takes: AdoptSession; readonly gives: Accepted };
  readonly "GET /v1/agents/{agent}/sessions": { readonly takes: undefined; readonly gives: AgentSessions };
  readonly "POST /v1/answers": { readonly takes: AnswerWait; readonly gives: Accepted };
  readonly "GET /v1/boards": { readonly takes: undefined; readonly gives: BoardList };
  readonly "POST /v1/boards": { readonly takes: CreateBoard; readonly gives: BoardAccepted };
  readonly "POST /v1/boards/{name}/archive": { readonly takes: ArchiveBoard; readonly gives: BoardAccepted };
  readonly "POST /v1/boards/{name}/pause": { readonly takes: PauseBoard; readonly gives: BoardAccepted };
  readonly "POST /v1/boards/{name}/resume": { readonly takes: ResumeBoard; readonly gives: BoardAccepted };
  readonly "GET /v1/build": { readonly takes: undefined; readonly gives: Build };
  readonly "GET /v1/cards": { readonly takes: undefined; readonly gives: CardPage };
  readonly "POST /v1/cards": { readonly takes: CreateCard; readonly gives: CardAccepted };
  readonly "GET /v1/cards/{id}": { readonly takes: undefined; readonly gives: CardDetail };
  readonly "PATCH /v1/cards/{id}": { readonly takes: EditCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/archive": { readonly takes: ArchiveCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/block": { readonly takes: BlockCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/comments": { readonly takes: CommentCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/complete": { readonly takes: CompleteCard; readonly gives: CardAccepted };
  readonly "GET /v1/cards/{id}/context": { readonly takes: undefined; readonly gives: CardContext };
  readonly "GET /v1/cards/{id}/diff": { readonly takes: undefined; readonly gives: FileChanges };
  readonly "POST /v1/cards/{id}/follow": { readonly takes: FollowCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/links": { readonly takes: LinkCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/move": { readonly takes: MoveCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/release": { readonly takes: undefined; readonly gives: CardReleased };
  readonly "POST /v1/cards/{id}/retry": { readonly takes: RetryCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/stop": { readonly takes: StopCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/unblock": { readonly takes: UnblockCard; readonly gives: CardAccepted };
  readonly "POST /v1/cards/{id}/unlink": { readonly takes: UnlinkCard; readonly gives: CardAccepted };
  readonly "GET /v1/cards/{id}/why": { readonly takes: undefined; readonly gives: Why };
  readonly "POST /v1/codes": { readonly takes: undefined; readonly gives: SignInCode };
  readonly "GET /v1/devices": { readonly takes: undefined; readonly gives: DeviceList };
  readonly "GET /v1/devices/me": { readonly takes: undefined; readonly gives: OwnDevice };
  readonly "DELETE /v1/devices/{id}": { readonly takes: undefined; readonly gives: LoggedIn };
  readonly "PATCH /v1/devices/{id}": { readonly takes: RenameDevice; readonly gives: LoggedIn };
  readonly "GET /v1/doctor": { readonly takes: undefined; readonly gives: Findings };
  readonly "GET /v1/events": { readonly takes: undefined; readonly gives: EventPage };
  readonly "GET /v1/inbox": { readonly takes: undefined; readonly gives: Inbox };
  readonly "GET /v1/inbox/{wait}": { readonly takes: undefined; readonly gives: WaitDetail };
  readonly "POST /v1/login": { readonly takes: LogIn; readonly gives: LoggedIn };
  readonly "POST /v1/logout": { readonly takes: undefined; readonly gives: LoggedIn };
  readonly "POST /v1/looked": { readonly takes: undefined; readonly gives: Reviewed };
  readonly "POST /v1/looking": { readonly takes: Looking; readonly gives: Looked };
  readonly "GET /v1/models": { readonly takes: undefined; readonly gives: ModelList };
  readonly "GET /v1/nodes": { readonly takes: undefined; readonly gives: NodeList };
  readonly "DELETE /v1/nodes/{name}": { readonly takes: undefined; readonly gives: NodeChanged };
  readonly "POST /v1/nodes/{name}/drain": { readonly takes: undefined; readonly gives: NodeChanged };
  readonly "GET /v1/nodes/{name}/why": { readonly takes: undefined; readonly gives: Why };
  readonly "GET /v1/notify": { readonly takes: undefined; readonly gives: DestinationList };
  readonly "GET /v1/notify/log": { readonly takes: undefined; readonly gives: DeliveryList };
  readonly "POST /v1/notify/test": { readonly takes: TestNotice; readonly gives: TestResult };
  readonly "GET /v1/overview": { readonly takes: undefined; readonly gives: Overview };
  readonly "GET /v1/profiles": { readonly takes: undefined; readonly gives: ProfileList };
  readonly "POST /v1/profiles": { readonly takes: NewProfile; readonly gives: ProfileList };
  readonly "DELETE /v1/profiles/{name}": { readonly takes: undefined; readonly gives: ProfileList };
  readonly "PATCH /v1/profiles/{name}": { readonly takes: EditProfile; readonly gives: ProfileList };
  readonly "DELETE /v1/push": { readonly takes: undefined; readonly gives: PushState };
  readonly "GET /v1/push": { readonly takes: undefined; readonly gives: PushState };
  readonly "POST /v1/push": { readonly takes: PushSubscribe; readonly gives: PushState };
  readonly "POST /v1/restart": { readonly takes: Restart; readonly gives: ShuttingDown };
  readonly "GET /v1/retention": { readonly takes: undefined; readonly gives: RetentionView };
  readonly "POST /v1/retention": { readonly takes: undefined; readonly gives: RetentionView };
  readonly "GET /v1/search": { readonly takes: undefined; readonly gives: SearchPage };
  readonly "POST /v1/seen": { readonly takes: ReadPosition; readonly gives: ReadPosition };
  readonly "GET /v1/sessions": { readonly takes: undefined; readonly gives: SessionPage };
  readonly "POST /v1/sessions": { readonly takes: CreateSession; readonly gives: Accepted };
  readonly "DELETE /v1/sessions/{id}": { readonly takes: DeleteSession; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}": { readonly takes: undefined; readonly gives: SessionDetail };
  readonly "PATCH /v1/sessions/{id}": { readonly takes: RenameSession; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/agent": { readonly takes: ChooseAgent; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/archive": { readonly takes: ArchiveSession; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}/away": { readonly takes: undefined; readonly gives: AwaySummary };
  readonly "POST /v1/sessions/{id}/compact": { readonly takes: CompactSession; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}/context": { readonly takes: undefined; readonly gives: ModelContext };
  readonly "POST /v1/sessions/{id}/detach": { readonly takes: DetachTurn; readonly gives: TaskAccepted };
  readonly "POST /v1/sessions/{id}/dismiss": { readonly takes: DismissFailure; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}/events": { readonly takes: undefined; readonly gives: EventPage };
  readonly "GET /v1/sessions/{id}/export": { readonly takes: undefined; readonly gives: undefined };
  readonly "POST /v1/sessions/{id}/fork": { readonly takes: ForkSession; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/messages": { readonly takes: SendMessage; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/mode": { readonly takes: ChooseMode; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/node": { readonly takes: ChooseNode; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/pin": { readonly takes: PinSession; readonly gives: Accepted };
  readonly "DELETE /v1/sessions/{id}/queue/{input}": { readonly takes: undefined; readonly gives: Accepted };
  readonly "PATCH /v1/sessions/{id}/queue/{input}": { readonly takes: QueueEdit; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/repeat": { readonly takes: RepeatTurn; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}/reset": { readonly takes: undefined; readonly gives: ResetOutlook };
  readonly "POST /v1/sessions/{id}/reset": { readonly takes: ResetSession; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/reset/policy": { readonly takes: SetResetPolicy; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/reset/undo": { readonly takes: UndoReset; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/restore": { readonly takes: RestoreSession; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/stop": { readonly takes: StopTurn; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/tell": { readonly takes: SetSessionTell; readonly gives: Accepted };
  readonly "POST /v1/sessions/{id}/undo": { readonly takes: UndoTurn; readonly gives: Accepted };
  readonly "GET /v1/sessions/{id}/why": { readonly takes: undefined; readonly gives: Why };
  readonly "GET /v1/settings": { readonly takes: undefined; readonly gives: SettingsView };
  readonly "PATCH /v1/settings": { readonly takes: EditSettings; readonly gives: SettingsView };
  readonly "GET /v1/settings/shared": { readonly takes: undefined; readonly gives: SharedSettingsView };
  readonly "PUT /v1/settings/shared": { readonly takes: ReplaceSharedSettings; readonly gives: SharedSettingsView };
  readonly "POST /v1/shutdown": { readonly takes: undefined; readonly gives: ShuttingDown };
  readonly "GET /v1/status": { readonly takes: undefined; readonly gives: Status };
  readonly "GET /v1/tasks": { readonly takes: undefined; readonly gives: TaskPage };
  readonly "POST /v1/tasks": { readonly takes: StartCommand; readonly gives: TaskAccepted };
  readonly "POST /v1/tasks/agents": { readonly takes: StartAgent; readonly gives: TaskAccepted };
  readonly "POST /v1/tasks/prune": { readonly takes: PruneTasks; readonly gives: PruneResult };
  readonly "GET /v1/tasks/search": { readonly takes: undefined; readonly gives: OutputHits };
  readonly "GET /v1/tasks/stale": { readonly takes: undefined; readonly gives: TaskPage };
  readonly "GET /v1/tasks/{id}": { readonly takes: undefined; readonly gives: TaskView };
  readonly "GET /v1/tasks/{id}/diff": { readonly takes: undefined; readonly gives: FileChanges };
  readonly "GET /v1/tasks/{id}/events": { readonly takes: undefined; readonly gives: EventPage };
  readonly "GET /v1/tasks/{id}/output": { readonly takes: undefined; readonly gives: OutputPage };
  readonly "GET /v1/tasks/{id}/output/search": { readonly takes: undefined; readonly gives: OutputMatches };
  readonly "POST /v1/tasks/{id}/pin": { readonly takes: PinTask; readonly gives: TaskAccepted };
  readonly "POST /v1/tasks/{id}/rerun": { readonly takes: RerunTask; readonly gives: TaskAccepted };
  readonly "POST /v1/tasks/{id}/stop": { readonly takes: StopTask; readonly gives: TaskAccepted };
  readonly "POST /v1/tasks/{id}/tell": { readonly takes: SetTaskTell; readonly gives: TaskAccepted };
  readonly "GET /v1/tasks/{id}/wait": { readonly takes: undefined; readonly gives: TaskView };
  readonly "GET /v1/tasks/{id}/why": { readonly takes: undefined; readonly gives: Why };
  readonly "POST /v1/tasks/{id}/write": { readonly takes: WriteTask; readonly gives: WriteResult };
  readonly "GET /v1/telegram": { readonly takes: undefined; readonly gives: TelegramStatus };
  readonly "POST /v1/telegram/pair": { readonly takes: PairPerson; readonly gives: TelegramStatus };
  readonly "POST /v1/telegram/remove": { readonly takes: RemovePerson; readonly gives: TelegramStatus };
  readonly "GET /v1/unread": { readonly takes: undefined; readonly gives: Unread };
  readonly "GET /v1/why": { readonly takes: undefined; readonly gives: Why };
}
