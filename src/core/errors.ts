/** What the table says about one error code. */
interface ErrorEntry {
  /** HTTP status. */
  readonly status: number
  /** `type` in OpenAI's error object. */
  readonly type: string
  /** May the caller send the same request again and hope for another outcome? */
  readonly retryable: boolean
  /** What the caller reads when the place that throws says nothing better. Never holds anything from outside. */
  readonly message: string
}

/**
 * Every error of the gateway. `docs/errors.md` shows this table, and a test keeps the two equal.
 * Statuses and shapes: API specification, "Errors".
 */
export const ERROR_TABLE = {
  invalid_request: { status: 400, type: 'invalid_request_error', retryable: false, message: 'The request is invalid.' },
  invalid_json: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The request body is not valid JSON.',
  },
  json_too_deep: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The request body nests deeper than 64 levels.',
  },
  unsupported_parameter: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The model does not support a parameter of the request.',
  },
  endpoint_model_mismatch: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The model cannot be used on this endpoint.',
  },
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    message: 'The API key is missing or invalid. Send it as: Authorization: Bearer <API_KEY>.',
  },
  insufficient_balance: {
    status: 402,
    type: 'insufficient_quota',
    retryable: false,
    message: 'The balance is too low for this request.',
  },
  spending_cap_reached: {
    status: 402,
    type: 'insufficient_quota',
    retryable: false,
    message: 'The spending cap of this API key or account is reached for the period.',
  },
  permission_denied: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    message: 'This API key may not do that.',
  },
  route_not_found: { status: 404, type: 'invalid_request_error', retryable: false, message: 'There is no such route.' },
  model_not_found: { status: 404, type: 'invalid_request_error', retryable: false, message: 'There is no such model.' },
  interaction_not_found: {
    status: 404,
    type: 'invalid_request_error',
    retryable: false,
    message: 'There is no such interaction, or it has expired.',
  },
  task_not_found: { status: 404, type: 'invalid_request_error', retryable: false, message: 'There is no such task.' },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The method is not allowed on this route.',
  },
  idempotency_in_flight: {
    status: 409,
    type: 'invalid_request_error',
    retryable: true,
    message: 'A request with this Idempotency-Key is still being answered.',
  },
  content_not_found: {
    status: 404,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The task has no content: it failed, was cancelled, or its content has expired.',
  },
  task_not_cancellable: {
    status: 409,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The task cannot be cancelled: it is running, or it has ended.',
  },
  task_not_finished: {
    status: 409,
    type: 'invalid_request_error',
    retryable: true,
    message: 'The task has no content yet.',
  },
  body_too_large: {
    status: 413,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The request body is too large.',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The content type is not supported on this route.',
  },
  idempotency_mismatch: {
    status: 422,
    type: 'invalid_request_error',
    retryable: false,
    message: 'This Idempotency-Key was used with another request.',
  },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    message: 'Too many requests. Slow down and try again.',
  },
  upstream_rejected: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The model vendor refused the request.',
  },
  client_closed_request: {
    status: 499,
    type: 'invalid_request_error',
    retryable: false,
    message: 'The caller closed the connection.',
  },
  body_consumed: {
    status: 500,
    type: 'server_error',
    retryable: false,
    message:
      'The request body was read before the gateway saw it, and nothing of it was kept. Mount the gateway before body parsers, or use one that leaves the parsed body on the request.',
  },
  internal_error: {
    status: 500,
    type: 'server_error',
    retryable: true,
    message: 'Something went wrong in the gateway.',
  },
  upstream_invalid_response: {
    status: 502,
    type: 'server_error',
    retryable: true,
    message: 'The model vendor sent an answer that cannot be used.',
  },
  upstream_unavailable: {
    status: 503,
    type: 'server_error',
    retryable: true,
    message: 'The model vendor is not available at the moment.',
  },
  model_not_configured: {
    status: 503,
    type: 'server_error',
    retryable: false,
    message: 'The vendor of this model is not configured.',
  },
  model_not_priced: {
    status: 503,
    type: 'server_error',
    retryable: false,
    message: 'There is no price for this request, and billing is on.',
  },
  store_unavailable: {
    status: 503,
    type: 'server_error',
    retryable: true,
    message: 'The gateway cannot reach its store at the moment.',
  },
  gateway_closing: { status: 503, type: 'server_error', retryable: true, message: 'The gateway is shutting down.' },
  upstream_timeout: {
    status: 504,
    type: 'server_error',
    retryable: true,
    message: 'The model vendor did not answer in time.',
  },
} as const satisfies Record<string, ErrorEntry>

/** A code of the error table. */
export type ErrorCode = keyof typeof ERROR_TABLE

/** What may be said beyond the code. */
export interface GatewayErrorDetails {
  /** For the caller; replaces the table's message. Must hold nothing secret. */
  readonly message?: string | undefined
  /** The field of the request that is at fault. */
  readonly param?: string | undefined
  /** Replaces the table's status: a vendor's own 404, 413 or 422 about the caller's input. */
  readonly status?: number | undefined
  /** Replaces the code in the answer: a vendor's own code, such as `InvalidParameter`. */
  readonly publicCode?: string | undefined
  /** Replaces `type` in the answer. */
  readonly type?: string | undefined
  /** Seconds after which a retry makes sense. */
  readonly retryAfterSeconds?: number | undefined
  /** The vendor's own id of the request, shown where the dialect has a place for it. */
  readonly upstreamRequestId?: string | undefined
  /** Did the vendor say that it is overloaded? Shown where the dialect has a word for it. */
  readonly isOverload?: boolean | undefined
  /** Replaces the table's word on whether to send the request again. */
  readonly retryable?: boolean | undefined
  /** What led here; logged, never shown. */
  readonly cause?: unknown
}

const MARK = Symbol.for('signalbox.GatewayError')

/**
 * The one error class of the gateway. Match by `code`; recognise by {@link GatewayError.isInstance}, which also holds
 * across the ESM and CommonJS copies of the package.
 */
export class GatewayError extends Error {
  // Bundlers rename classes; logs show this name.
  static {
    Object.defineProperty(GatewayError, 'name', { value: 'GatewayError' })
  }

  readonly code: ErrorCode
  readonly status: number
  readonly type: string
  readonly publicCode: string
  readonly param: string | undefined
  readonly retryAfterSeconds: number | undefined
  /** The vendor's own id of the request, where it refused one. */
  readonly upstreamRequestId: string | undefined
  /** True when the vendor said that it is overloaded. */
  readonly isOverload: boolean
  /** False also where sending the request again might have a paid job done twice. */
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

  /** True for an error of this class from any copy of the package. */
  static isInstance(value: unknown): value is GatewayError {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true
  }

  /** The value itself when it is a GatewayError, else an `internal_error` with the value as its cause. */
  static from(value: unknown): GatewayError {
    return GatewayError.isInstance(value) ? value : new GatewayError('internal_error', { cause: value })
  }
}
