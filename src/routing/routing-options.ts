/**
 * How one of several healthy candidates of equal priority is chosen. `weighted`: each takes its share by weight. `latency`: of
 * two by weight, the one that answers sooner, its calls under way considered. `cost`: the cheapest for the estimate of
 * the request, by the price list's rows for `vendor/upstream`.
 */
export type RoutingStrategy = 'weighted' | 'latency' | 'cost'

/** All strategies. */
export const ROUTING_STRATEGIES: readonly RoutingStrategy[] = ['weighted', 'latency', 'cost']

/**
 * When a model's fallbacks may answer instead of it. `on-failure`: whenever the model itself cannot. `never`: not at all.
 * `statuses`: only where the caller would get one of these HTTP statuses otherwise; a model whose circuits are all open
 * counts as 503.
 */
export type FallbackPolicy = 'on-failure' | 'never' | { readonly statuses: readonly number[] }

/** A second call, when the first one is slow. */
export interface HedgeOptions {
  /** How long the first call may take before another candidate is asked as well, in milliseconds. */
  readonly afterMs: number
}

/** How requests find a vendor. */
export interface RoutingOptions {
  /** Default `weighted`. */
  readonly strategy?: RoutingStrategy
  /** Default `on-failure`. */
  readonly fallback?: FallbackPolicy
  /**
   * Asks a second candidate of the same model when the first one is slow, and takes the first answer; the other call is
   * cancelled. For whole answers of chat and embeddings. Counts as a retry. Default: off.
   */
  readonly hedge?: HedgeOptions
  /**
   * Gives a whole answer up when it has not begun within `timeouts.firstByteMs`, and asks for it elsewhere. The first call may
   * go on at its vendor and be billed, for which nobody is charged. Default false: a whole answer has the whole time, and nobody
   * else is asked after a time-out.
   */
  readonly retryAfterTimeout?: boolean
}

/** What a host may decide for single requests that it makes in its own process. Callers over HTTP cannot. */
export interface RouteOverride {
  /** Only candidates of this vendor. */
  readonly vendor?: string
  readonly strategy?: RoutingStrategy
  readonly fallback?: FallbackPolicy
}
