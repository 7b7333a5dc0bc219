/** The cache of what the gateway answered. The queries themselves stand beside their pages. */
import { QueryClient } from "@tanstack/react-query";
import { connection } from "./connection";
import { Unreachable } from "./http";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      networkMode: "always",
      retry: (failures, error) => error instanceof Unreachable && connection.get().state !== "offline" && failures < 2,
    },
    mutations: { networkMode: "always" },
  },
});

/** How often something that runs is asked about. */
export const POLL_MS = 5_000;
