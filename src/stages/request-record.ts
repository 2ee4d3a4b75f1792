import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import type { Principal } from '../stores/principal.ts'
import { CallerPresence } from './caller-presence.ts'
import { CallGroup } from './dispatch/call-group.ts'
import type { Received, Reserved } from './records.ts'
import type { HostRouted } from './route.ts'

/** What a record begins with. */
export interface RecordBeginning {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  /** Unix milliseconds. */
  readonly startedAtMs: number
  readonly endpoint: Endpoint
  readonly vouchedPrincipal: Principal | undefined
  readonly routeOverride: RouteOverride | undefined
}

/**
 * The record of one request, with a place for what each stage adds, so that its shape never changes.
 *
 * A class, like everything that lives as long as a vendor thinks: object literals that often outlive a collection are put
 * into V8's old space from the start (allocation-site pretenuring), where they keep the whole of a finished request alive until
 * the next full collection. Under load that doubled the time a request costs (`npm run bench -- --only chat-json`).
 */
export class RequestRecord implements Received, HostRouted {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly startedAtMs: number
  readonly endpoint: Endpoint
  readonly caller: CallerPresence
  readonly calls = new CallGroup()
  readonly vouchedPrincipal: Principal | undefined
  readonly routeOverride: RouteOverride | undefined
  isAnnounced = false
  // Typed by the records of the stages that write them.
  principal: unknown = undefined
  body: unknown = undefined
  bytes: unknown = undefined
  isStream: unknown = undefined
  chain: unknown = undefined
  billingFields: unknown = undefined
  claim: unknown = undefined
  conversation: unknown = undefined
  estimate: unknown = undefined
  lease: unknown = undefined
  tokenTake: unknown = undefined
  requestBucket: unknown = undefined
  tokenBucket: unknown = undefined
  hold: unknown = undefined
  candidates: unknown = undefined

  constructor(beginning: RecordBeginning) {
    this.request = beginning.request
    this.sink = beginning.sink
    this.requestId = beginning.requestId
    this.startedAtMs = beginning.startedAtMs
    this.endpoint = beginning.endpoint
    this.caller = new CallerPresence(beginning.sink)
    this.vouchedPrincipal = beginning.vouchedPrincipal
    this.routeOverride = beginning.routeOverride
  }
}

/**
 * Lets the body go: once a stream is open nobody is asked again, and a prompt with pictures may weigh megabytes for as long
 * as the model speaks.
 */
export function forgetBody(reserved: Reserved): void {
  Object.assign(reserved, { body: { model: reserved.body.model }, bytes: undefined })
}
