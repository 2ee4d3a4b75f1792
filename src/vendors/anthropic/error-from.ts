import { isJsonObject, nonEmptyText, objectOf, parseVendorJson } from '../../core/json.ts'
import { retryAfterSeconds } from '../../wire/headers.ts'
import { isContextOverflow } from '../shared/openai-error.ts'
import { redactCredentials } from '../shared/vendor-options.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'

type FailureKind = VendorFailure['kind']

/** Longest text kept from a body that is not JSON, in characters. */
const MAX_TEXT_CHARACTERS = 500

/** Longest details to pass on, in characters of JSON. They contain a code and a few features. */
const MAX_DETAILS_CHARACTERS = 2_000

/** Error classification by type (Anthropic, "Errors"), used without an HTTP status. */
const KIND_BY_TYPE: ReadonlyMap<string | undefined, FailureKind> = new Map([
  ['invalid_request_error', 'caller'],
  ['request_too_large', 'caller'],
  ['authentication_error', 'operator'],
  ['billing_error', 'operator'],
  ['permission_error', 'operator'],
  ['not_found_error', 'operator'],
  ['rate_limit_error', 'rate_limited'],
  ['timeout_error', 'timeout'],
  ['conflict_error', 'unavailable'],
  ['api_error', 'unavailable'],
  ['overloaded_error', 'unavailable'],
] satisfies [string, FailureKind][])

const KIND_BY_STATUS: ReadonlyMap<number, FailureKind> = new Map([
  [400, 'caller'],
  [413, 'caller'],
  [422, 'caller'],
  [408, 'timeout'],
  [409, 'unavailable'],
  [429, 'rate_limited'],
  [504, 'timeout'],
] satisfies [number, FailureKind][])

// The vendor reports account problems of the operator as a bad request; only this text identifies them. It is matched from the
// start and without a colon, because other errors quote the request after a member's name: "x: Extra inputs are not permitted".
const ACCOUNT_MESSAGES: readonly RegExp[] = [
  /^your credit balance is too low\b(?!.*: )/is,
  /^you have reached your specified (?:\w+ )?API usage limits\b(?!.*: )/is,
  /^this organization has been disabled\b(?!.*: )/is,
]

// A missing or forbidden model is the operator's problem. Ids of these resources are chosen by callers.
const CALLERS_OBJECT = /\b(?:file|container|skill|thread)s?\b/i
const CALLERS_CODE = /^(?:file|container|skill|thread)_/

// A key without access to one model: only the text of a `permission_error` names the cause.
const MENTIONS_MODEL = /\bmodel\b/i

interface ErrorBody {
  readonly message: string
  readonly type: string | undefined
  readonly code: string | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined
}

/** Reads a non-2xx answer of the Messages API, or a 2xx answer with an error. Keys are removed from its text. */
export function errorFrom(answer: WireAnswer, nowMs: number, apiKeys: readonly string[]): VendorFailure {
  const text = new TextDecoder().decode(answer.body)
  const error = readErrorBody(parseVendorJson(text), text)
  const kind = kindOf(answer.status, error)
  const isOfModel = kind === 'operator' && answer.status === 403 && MENTIONS_MODEL.test(error.message)
  return {
    kind,
    ...(isOfModel ? { concerns: 'model' } : {}),
    ...concernsSize(kind, error),
    status: answer.status,
    message: redactCredentials(error.message, apiKeys),
    code: error.code,
    type: error.type,
    details: shownDetails(error.details, apiKeys),
    retryAfterSeconds: retryAfterSeconds(answer.headers, nowMs),
  }
}

/** Reads an error event inside a stream: `{type: "error", error: {type, message}}`. */
export function messagesStreamError(event: unknown, apiKeys: readonly string[]): VendorFailure {
  const error = readErrorBody(event, '')
  const kind = kindOf(0, error)
  return {
    kind,
    ...concernsSize(kind, error),
    status: 0,
    message: redactCredentials(error.message, apiKeys),
    code: error.code,
    type: error.type,
  }
}

// Anthropic and OpenAI have the same members under `error`. Proxies in front of the vendor send them flat.
function readErrorBody(body: unknown, text: string): ErrorBody {
  const outer = objectOf(body)
  const error = isJsonObject(outer['error']) ? outer['error'] : outer
  const details = objectOf(error['details'])
  const message = nonEmptyText(error['message']) ?? nonEmptyText(outer['error'])
  return {
    message: message ?? text.trim().slice(0, MAX_TEXT_CHARACTERS),
    type: nonEmptyText(error['type']),
    code: nonEmptyText(details['error_code']) ?? nonEmptyText(error['code']),
    details: isJsonObject(error['details']) ? error['details'] : undefined,
  }
}

/** The vendor's clients use the details to recover: they restart a lost thread. */
function shownDetails(details: ErrorBody['details'], apiKeys: readonly string[]): ErrorBody['details'] {
  const text = JSON.stringify(details)
  if (text === undefined || text.length > MAX_DETAILS_CHARACTERS) return undefined
  const redacted = parseVendorJson(redactCredentials(text, apiKeys))
  return isJsonObject(redacted) ? redacted : undefined
}

function concernsSize(kind: FailureKind, { message, code, type }: ErrorBody): Pick<VendorFailure, 'concerns'> {
  return kind === 'caller' && isContextOverflow(message, code, type) ? { concerns: 'size' } : {}
}

function kindOf(status: number, error: ErrorBody): FailureKind {
  if (error.code?.includes('spend_limit')) return 'operator'
  const byStatus = status < 300 ? (KIND_BY_TYPE.get(error.type) ?? unknownKind(status)) : kindOfStatus(status, error)
  const isAccount = byStatus === 'caller' && ACCOUNT_MESSAGES.some((pattern) => pattern.test(error.message))
  return isAccount ? 'operator' : byStatus
}

function kindOfStatus(status: number, { message, code = '' }: ErrorBody): FailureKind {
  const namesObject = CALLERS_OBJECT.test(message) && !MENTIONS_MODEL.test(message)
  if ((status === 404 || status === 403) && (namesObject || CALLERS_CODE.test(code))) return 'caller'
  if (status < 400) return 'invalid_response'
  if (status >= 500) return KIND_BY_STATUS.get(status) ?? 'unavailable'
  // Other 4xx concern the key, the account, the address or the model id, which the operator configures.
  return KIND_BY_STATUS.get(status) ?? 'operator'
}

function unknownKind(status: number): FailureKind {
  return status === 0 ? 'unavailable' : 'invalid_response'
}
