import type { MemberNames } from '../core/known-members.ts'

/**
 * How one of several healthy candidates of equal priority is chosen. `weighted`: by weight. `latency`: the faster one of
 * two that are drawn by weight, with its calls in progress considered. `cost`: the cheapest for the estimate of the
 * request, by the price list's rows for `vendor/upstream`.
 */
export type RoutingStrategy = 'weighted' | 'latency' | 'cost'

/** All strategies. */
export const ROUTING_STRATEGIES: readonly RoutingStrategy[] = ['weighted', 'latency', 'cost']

/**
 * When fallbacks may answer for a model. `on-failure`: whenever the model itself cannot. `never`: not at all. `statuses`:
 * only if the caller would otherwise get one of these HTTP statuses; a model whose circuits are all open counts as 503.
 */
export type FallbackPolicy = 'on-failure' | 'never' | { readonly statuses: readonly number[] }

/** A second call, when the first one is slow. */
export interface HedgeOptions {
  /** Milliseconds that the first call may take before another candidate is called too. */
  readonly afterMs: number
}

export const HEDGE_OPTIONS = {
  afterMs: true,
} satisfies MemberNames<HedgeOptions>

/** How requests find a vendor. */
export interface RoutingOptions {
  /** Default `weighted`. */
  readonly strategy?: RoutingStrategy
  /** Default `on-failure`. */
  readonly fallback?: FallbackPolicy
  /**
   * Calls a second candidate of the same model if the first one is slow. The first answer wins; the other call is
   * cancelled. For JSON responses of chat and embeddings. Counts as a retry. Default: off.
   */
  readonly hedge?: HedgeOptions
  /**
   * Gives a whole answer up when it has not begun within `timeouts.firstByteMs`, and asks for it elsewhere. The first call may
   * go on at its vendor and be billed; no account is charged for it. Default false: a whole answer has the whole time, and no other
   * candidate is asked after a time-out.
   */
  readonly retryAfterTimeout?: boolean
}

export const ROUTING_OPTIONS = {
  strategy: true,
  fallback: true,
  hedge: true,
  retryAfterTimeout: true,
} satisfies MemberNames<RoutingOptions>

/** Routing choices of a host for requests in its own process. Callers over HTTP have none. */
export interface RouteOverride {
  /** Only candidates of this vendor. */
  readonly vendor?: string
  /** Default: the gateway's own. */
  readonly strategy?: RoutingStrategy
  /** Default: the gateway's own. Cannot allow what the gateway's `never` forbids. */
  readonly fallback?: FallbackPolicy
}

export const ROUTE_OVERRIDE_MEMBERS = {
  vendor: true,
  strategy: true,
  fallback: true,
} satisfies MemberNames<RouteOverride>
