/** One entry of the error table. */
interface ErrorEntry {
  /** HTTP status. */
  readonly status: number
  /** `type` in OpenAI's error object. */
  readonly type: string
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** Message for the caller unless the thrower gives one. Contains no text from callers or vendors. */
  readonly message: string
}

/** Returns an entry for errors that the caller caused. */
function callerError(status: number, message: string, retryable = false): ErrorEntry {
  return entry(status, 'invalid_request_error', message, retryable)
}

/** Returns an entry for errors that the gateway or a vendor caused. */
function serverError(status: number, message: string, retryable = true): ErrorEntry {
  return entry(status, 'server_error', message, retryable)
}

function entry(status: number, type: string, message: string, retryable = false): ErrorEntry {
  return { status, type, retryable, message }
}

/**
 * Every error of the gateway. Coding clients retry by words of the text, such as "overloaded" and "service unavailable", so the text of
 * each retryable fault contains one. `docs/errors.md` shows this table, and a test keeps the two equal.
 * Statuses and shapes: API specification, "Errors".
 */
export const ERROR_TABLE = {
  invalid_request: callerError(400, 'The request is invalid.'),
  invalid_json: callerError(400, 'The request body is not valid JSON.'),
  json_too_deep: callerError(400, 'The request body nests deeper than 64 levels.'),
  unsupported_parameter: callerError(400, 'The model does not support a parameter of the request.'),
  // Not 503: clients retry every 5xx, but the caller has to choose another model.
  model_not_priced: callerError(400, 'There is no price for this request, and billing is on.'),
  endpoint_model_mismatch: callerError(400, 'The model cannot be used on this endpoint.'),
  invalid_api_key: entry(
    401,
    'authentication_error',
    'The API key is missing or invalid. Send it as: Authorization: Bearer <API_KEY>.',
  ),
  insufficient_balance: entry(402, 'insufficient_quota', 'The balance is too low for this request.'),
  account_in_arrears: entry(402, 'insufficient_quota', 'The account owes money for earlier requests.'),
  spending_cap_reached: entry(
    402,
    'insufficient_quota',
    'The spending cap of this API key or account is reached for the period.',
  ),
  credit_limit_reached: entry(402, 'insufficient_quota', 'The account has reached its credit limit.'),
  permission_denied: entry(403, 'permission_error', 'This API key may not do that.'),
  account_frozen: entry(403, 'permission_error', 'This account is frozen. Contact the operator.'),
  route_not_found: callerError(404, 'There is no such route.'),
  model_not_found: callerError(404, 'There is no such model.'),
  interaction_not_found: callerError(404, 'There is no such interaction, or it has expired.'),
  response_not_found: callerError(404, 'There is no such response, or it has expired.'),
  conversation_not_found: callerError(404, 'There is no such conversation, or it has expired.'),
  file_not_found: callerError(404, 'There is no such file, or it has expired.'),
  batch_not_found: callerError(404, 'There is no such batch.'),
  task_not_found: callerError(404, 'There is no such task.'),
  method_not_allowed: callerError(405, 'The method is not allowed on this route.'),
  idempotency_in_flight: callerError(409, 'A request with this Idempotency-Key is still being answered.', true),
  content_not_found: callerError(404, 'The task has no content: it failed, was cancelled, or its content has expired.'),
  task_not_cancellable: callerError(409, 'The task cannot be cancelled: it is running, or it has ended.'),
  task_not_finished: callerError(409, 'The task has no content yet.', true),
  batch_not_ended: callerError(409, 'The batch has not ended.'),
  body_too_large: callerError(413, 'The request body is too large.'),
  unsupported_media_type: callerError(415, 'The content type is not supported on this route.'),
  idempotency_mismatch: callerError(422, 'This Idempotency-Key was used with another request.'),
  rate_limited: entry(429, 'rate_limit_error', 'Too many requests. Slow down and try again.', true),
  storage_limit_reached: entry(429, 'insufficient_quota', 'This account has no room to store more. Delete something.'),
  request_denied: callerError(400, 'The request was denied by a rule of this service.'),
  answer_denied: callerError(400, 'The answer was withheld by a rule of this service.'),
  upstream_rejected: callerError(400, 'The model vendor refused the request.'),
  client_closed_request: callerError(499, 'The caller closed the connection.'),
  body_consumed: serverError(500, 'The request body was read before the gateway saw it.', false),
  internal_error: serverError(500, 'Internal error: something went wrong in the gateway.'),
  invalid_principal: serverError(500, 'The server signed this caller in with data that cannot be used.', false),
  upstream_invalid_response: serverError(502, 'Server error: the model vendor sent an answer that cannot be used.'),
  upstream_unavailable: serverError(503, 'Service unavailable: the model vendor cannot answer at the moment.'),
  model_not_configured: serverError(503, 'The vendor of this model is not configured.', false),
  plan_not_configured: serverError(503, 'The plan of this account is not configured.', false),
  store_unavailable: serverError(503, 'Service unavailable: the gateway cannot reach its store at the moment.'),
  overloaded: serverError(503, 'This server is overloaded: it has no room for another request at the moment.'),
  hook_failed: serverError(
    503,
    'Service unavailable: a check of this service failed, so the request was not answered.',
  ),
  commit_failed: serverError(
    503,
    'The statements of the host failed, or their commit, so the call has no answer.',
    false,
  ),
  gateway_closing: serverError(503, 'Service unavailable: the gateway is shutting down.'),
  cache_miss: serverError(504, 'The cache has no answer to this request.', false),
  upstream_timeout: serverError(504, 'The request timed out: the model vendor did not answer in time.'),
} as const satisfies Record<string, ErrorEntry>

/** A code of the error table. */
export type ErrorCode = keyof typeof ERROR_TABLE

/** Details of an error in addition to its code. */
export interface GatewayErrorDetails {
  /** Message for the caller; replaces the table's message. Must contain no secrets. */
  readonly message?: string | undefined
  /** The request field that caused the error. */
  readonly param?: string | undefined
  /** Status that replaces the one of the table, such as a vendor's own 404, 413 or 422 about the caller's input. */
  readonly status?: number | undefined
  /** Code that replaces the one in the answer, such as a vendor's own `InvalidParameter`. */
  readonly publicCode?: string | undefined
  /** Replaces `type` in the answer. */
  readonly type?: string | undefined
  /** Delay after which a retry can succeed, in seconds. */
  readonly retryAfterSeconds?: number | undefined
  /** The vendor's own request id, shown if the dialect has a field for it. */
  readonly upstreamRequestId?: string | undefined
  /** Whether the vendor reported overload. Shown if the dialect has an error type for it. */
  readonly isOverload?: boolean | undefined
  /** Replaces the table's `retryable`. */
  readonly retryable?: boolean | undefined
  /** The cause; logged, never shown. */
  readonly cause?: unknown
}

const MARK = Symbol.for('signalbox.GatewayError')

/** Returns a readable text for an error. Node reports refused connections to several addresses as one error without a message. */
export function textOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : []
  return first instanceof Error ? first.message : ((error as NodeJS.ErrnoException).code ?? error.name)
}

/**
 * The only error class of the gateway. Match errors by `code`, and recognize them with {@link GatewayError.isInstance}, which
 * also works across the ESM and CommonJS copies of the package.
 */
export class GatewayError extends Error {
  // Bundlers rename classes; logs show this name.
  static {
    Object.defineProperty(GatewayError, 'name', { value: 'GatewayError' })
  }

  /** Key of `ERROR_TABLE`. Match by this. */
  readonly code: ErrorCode
  /** HTTP status that a caller gets. */
  readonly status: number
  /** OpenAI's error type: `invalid_request_error`. */
  readonly type: string
  /** Code that callers read: the vendor's own code if the vendor rejected the request, otherwise `code`. */
  readonly publicCode: string
  /** Path of the invalid field, or `undefined` if no field is invalid. */
  readonly param: string | undefined
  /** Value of the header `retry-after`, in seconds, or `undefined` if the header is not sent. */
  readonly retryAfterSeconds: number | undefined
  /** The vendor's own request id, if it refused the request. */
  readonly upstreamRequestId: string | undefined
  /** Whether the vendor reported overload. */
  readonly isOverload: boolean
  /** Whether a retry can succeed. False if a retry could run a paid job twice. */
  readonly retryable: boolean

  constructor(code: ErrorCode, details: GatewayErrorDetails = {}) {
    const entry: ErrorEntry = ERROR_TABLE[code]
    super(details.message ?? entry.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'GatewayError'
    this.code = code
    this.status = details.status ?? entry.status
    this.type = details.type ?? entry.type
    this.publicCode = details.publicCode ?? code
    this.param = details.param
    this.retryAfterSeconds = details.retryAfterSeconds
    this.upstreamRequestId = details.upstreamRequestId
    this.isOverload = details.isOverload === true
    this.retryable = details.retryable ?? entry.retryable
    Object.defineProperty(this, MARK, { value: true })
  }

  /** Returns whether a value is an error of this class, from any copy of the package. */
  static isInstance(value: unknown): value is GatewayError {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true
  }

  /** Returns the value itself if it is a GatewayError, otherwise an `internal_error` with the value as its cause. */
  static from(value: unknown): GatewayError {
    return GatewayError.isInstance(value) ? value : new GatewayError('internal_error', { cause: value })
  }
}
