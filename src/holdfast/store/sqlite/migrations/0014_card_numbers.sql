-- Cards have a number (HF-118). Their events got it before this (card_numbers.py), in the order of their creation.
ALTER TABLE cards ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE cards SET number = created.number
FROM (SELECT stream, ROW_NUMBER() OVER (ORDER BY seq) AS number FROM events WHERE kind = 'CardCreated') AS created
WHERE created.stream = 'card/' || cards.id;
CREATE UNIQUE INDEX cards_by_number ON cards (number) WHERE number > 0;
