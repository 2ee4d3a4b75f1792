/**
 * Strategy that chooses among healthy candidates of equal priority. `weighted`: by weight. `latency`: the faster one of two that
 * are drawn by weight, considering its calls in progress. `cost`: the cheapest for the estimated request, by the price list's
 * rows for `vendor/upstream`.
 */
export type RoutingStrategy = 'weighted' | 'latency' | 'cost'

/** All strategies. */
export const ROUTING_STRATEGIES = ['weighted', 'latency', 'cost'] as const satisfies readonly RoutingStrategy[]

/**
 * Condition for answers of fallbacks. `on-failure`: whenever the model itself cannot answer. `never`: not at all. `statuses`:
 * only if the caller would otherwise get one of these HTTP statuses; a model whose circuits are all open counts as 503.
 */
export type FallbackPolicy = 'on-failure' | 'never' | { readonly statuses: readonly number[] }

/** Settings for choosing a vendor. */
export interface RoutingOptions {
  /** Strategy. Default `weighted`. */
  readonly strategy?: RoutingStrategy
  /** Fallback policy. Default `on-failure`. */
  readonly fallback?: FallbackPolicy
  /**
   * Whether to retry a complete answer that has not begun within `timeouts.firstByteMs` at another candidate. The first call may
   * continue at its vendor and be billed; no account is charged for it. Default false: a complete answer may use the whole time,
   * and no other candidate is called after a timeout.
   */
  readonly retryAfterTimeout?: boolean
}

/** Routing settings of a host for requests in its own process. Not available to callers over HTTP. */
export interface RouteOverride {
  /** Vendor to which the candidates are limited. */
  readonly vendor?: string
  /** Strategy. Defaults to the gateway's. */
  readonly strategy?: RoutingStrategy
  /** Fallback policy. Defaults to the gateway's, and cannot override the gateway's `never`. */
  readonly fallback?: FallbackPolicy
}
