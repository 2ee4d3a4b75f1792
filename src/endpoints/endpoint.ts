import type { GatewayError } from '../core/errors.ts'
import type { ModelKind } from '../core/model-kind.ts'
import type { Usage } from '../core/usage.ts'
import type { ErrorDialect } from './error-body.ts'

/** What a reservation needs to know of a model. */
export interface EstimateLimits {
  readonly maxOutputTokens?: number
}

/** Parameters that a price may depend on, such as `{ resolution: '720p' }`. */
export type BillingFields = Readonly<Record<string, string>>

/** One way to call models: a path, the shape of its request, and what the request will cost at most. */
export interface Endpoint<Request extends { model: string } = { model: string }> {
  /** Short id, used in key scopes and events: `chat`. */
  readonly id: string
  readonly path: string
  /** Kind of the models it serves. */
  readonly kind: ModelKind
  readonly dialect: ErrorDialect
  /**
   * Checks a parsed body. Unknown fields stay in it.
   * @throws GatewayError `invalid_request` naming the field.
   */
  parse(body: unknown): Request
  /** Does the caller want server-sent events? */
  isStream(request: Request): boolean
  /** An upper estimate of what the request will use, given that of its input; money and tokens are reserved by it. */
  estimate(request: Request, inputTokens: number, limits: EstimateLimits): Usage
  billingFields(request: Request): BillingFields
  /** An error event for a stream that has begun; the connection is ended after it. */
  streamError(error: GatewayError): string
}
