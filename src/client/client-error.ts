import { ERROR_TABLE, type ErrorCode, GatewayError, type GatewayErrorDetails } from '../core/errors.ts'

/**
 * {@link GatewayError} in a client, in any error dialect. `code`, `status`, `param` and `retryAfterSeconds` come from the gateway;
 * `publicCode` contains a vendor's own code.
 */
export class ClientError extends GatewayError {
  /** Request id of the gateway, or `undefined` if no answer arrived. */
  readonly requestId: string | undefined

  constructor(code: ErrorCode, details: GatewayErrorDetails & { readonly requestId?: string | undefined } = {}) {
    super(code, details)
    this.requestId = details.requestId
  }

  /** Whether a value is an error of this class from any copy of the package. */
  static override isInstance(value: unknown): value is ClientError {
    return GatewayError.isInstance(value) && 'requestId' in value
  }
}

/** How much of a foreign error page is read, and how much of its text is shown. */
const MAX_PAGE_CHARACTERS = 4_000
const MAX_SHOWN_CHARACTERS = 200

/** The gateway's own errors in the upstream style (API specification, "Errors"). */
const UPSTREAM_CODES: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  ['InvalidParameter', 'invalid_request'],
  ['Throttling.RateQuota', 'rate_limited'],
  ['InvalidApiKey', 'invalid_api_key'],
  ['AccessDenied', 'permission_denied'],
  ['RequestTimeOut', 'upstream_timeout'],
  ['ModelUnavailable', 'upstream_unavailable'],
  ['InternalError', 'internal_error'],
])

/** Codes for answers without a known code: errors in Anthropic's dialect, of a vendor, or of a proxy. */
const CODES_BY_STATUS: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [401, 'invalid_api_key'],
  [402, 'insufficient_balance'],
  [403, 'permission_denied'],
  [405, 'method_not_allowed'],
  [408, 'upstream_timeout'],
  [409, 'idempotency_in_flight'],
  [413, 'body_too_large'],
  [415, 'unsupported_media_type'],
  [429, 'rate_limited'],
  [500, 'internal_error'],
  [502, 'upstream_invalid_response'],
  [504, 'upstream_timeout'],
])

/** Values of `x-should-retry`, which OpenAI's and Anthropic's clients also obey. */
const SHOULD_RETRY: ReadonlyMap<string | null, boolean> = new Map([
  ['true', true],
  ['false', false],
])

/**
 * Converts an error answer in any dialect to the error that the gateway threw.
 * @param facts `isPaidJob`: only the gateway knows whether such a job has started, so a failure reported by a proxy is not
 *   retried.
 */
export async function clientError(
  response: Response,
  { nowMs, isPaidJob }: { readonly nowMs: number; readonly isPaidJob: boolean },
): Promise<ClientError> {
  const text = await response.text()
  return errorOf(parse(text) ?? { message: foreignMessage(response, text) }, {
    status: response.status,
    codeHeader: response.headers.get('x-signalbox-error-code'),
    requestId: requestIdOf(response),
    retryAfterSeconds: retryAfterSeconds(response.headers.get('retry-after'), nowMs),
    shouldRetry: SHOULD_RETRY.get(response.headers.get('x-should-retry')),
    isPaidJob,
  })
}

/** Facts of an error in addition to its body. */
interface ErrorFacts {
  readonly status: number
  /** Code from the gateway's header, for bodies without a field for it. */
  readonly codeHeader?: string | null
  readonly requestId: string | undefined
  readonly retryAfterSeconds?: number | undefined
  /** Value of the gateway's retry header. If `undefined`, the error table decides. */
  readonly shouldRetry?: boolean | undefined
  readonly isPaidJob?: boolean
  /** Whether the error occurred inside a started answer. Default false. */
  readonly hasBegun?: boolean
}

/** Creates an error from an error body or an error event in any dialect. */
export function errorOf(body: unknown, facts: ErrorFacts): ClientError {
  const outer = membersOf(body)
  const inner = typeof outer['error'] === 'object' ? membersOf(outer['error']) : outer
  const code = inner['code'] ?? outer['code']
  const param = textOf(inner['param'])
  const type = textOf(inner['type'])
  const known = knownCode(facts.codeHeader) ?? knownCode(code)
  // A proxy's 503 is not proof: some proxies send it on their own timeout while the job continues.
  const isRefusal = known !== undefined || facts.status < 500
  const isOpen = facts.isPaidJob === true && (facts.hasBegun === true || !isRefusal)
  return new ClientError(known ?? codeOf({ code, type, param, status: facts.status }), {
    ...facts,
    retryable: facts.shouldRetry ?? (isOpen ? false : undefined),
    message: textOf(inner['message'] ?? outer['message']),
    publicCode: textOf(code),
    type,
    param,
    requestId: facts.requestId ?? textOf(outer['request_id']),
  })
}

/** Returns the gateway's request id of an answer. */
export function requestIdOf({ headers }: Response): string | undefined {
  return headers.get('x-request-id') ?? headers.get('request-id') ?? undefined
}

/** Returns a hint at an unexpected media type, to append to a message; empty if there is no type or the right one. */
export function foreignType({ headers }: Response, expected: string): string {
  const type = headers.get('content-type')
  if (type === null || type.includes(expected)) return ''
  return type.startsWith('text/') ? ` It is ${type}: is the base URL that of a gateway?` : ` It is ${type}.`
}

/** Returns the list of an answer. @throws ClientError if there is no list. */
export function listed<Row>(rows: readonly Row[], requestId: string | undefined): readonly Row[] {
  if (Array.isArray(rows)) return rows
  throw brokenResponse('The answer holds no list.', { requestId })
}

/** Error for a broken connection, or for a response that is not from a gateway. A paid job is not retried, because it may be complete. */
export function brokenResponse(
  message: string,
  { requestId, isPaidJob }: Pick<ErrorFacts, 'requestId' | 'isPaidJob'>,
  cause?: unknown,
): ClientError {
  const retryable = isPaidJob === true ? false : undefined
  return new ClientError('upstream_invalid_response', { message, requestId, cause, retryable })
}

/** Returns a code of the gateway, or `undefined` for any other code. */
function knownCode(code: unknown): ErrorCode | undefined {
  if (typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code)) return code as ErrorCode
  return UPSTREAM_CODES.get(code)
}

function codeOf(error: {
  readonly code: unknown
  readonly type: string | undefined
  readonly param: string | undefined
  readonly status: number
}): ErrorCode {
  const { code, type, param, status } = error
  if (status === 404) return type === 'not_found_error' ? 'model_not_found' : 'route_not_found'
  const known = CODES_BY_STATUS.get(status)
  if (known !== undefined) return known
  if (status >= 500) return 'upstream_unavailable'
  // The gateway names the invalid field; a vendor's rejection contains the vendor's own text.
  return param === undefined && code !== undefined ? 'upstream_rejected' : 'invalid_request'
}

/** Reads seconds or a date (RFC 9110, section 10.2.3). */
function retryAfterSeconds(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - nowMs) / 1000
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Returns `undefined` for a body that is not JSON. The gateway always sends JSON. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return undefined
  }
}

/** Message for an error response that is not from the gateway, such as a proxy's. */
function foreignMessage(response: Response, text: string): string {
  const words = text
    .slice(0, MAX_PAGE_CHARACTERS)
    .replace(/<(style|script|title)[\s\S]*?<\/\1>|<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const shown = words === '' ? '' : `: ${words.slice(0, MAX_SHOWN_CHARACTERS)}`
  return `HTTP ${response.status}, not from a gateway${shown}`
}
