import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import { asBuffer } from '../../wire/chunks.ts'
import { firstHeader, mediaType, retryAfterSeconds } from '../../wire/headers.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'
import { failedChoice, failedStatus, isErrorEnvelope } from './openai-chat-dialect.ts'
import { redactCredentials } from './vendor-options.ts'

type FailureKind = VendorFailure['kind']
type Concern = 'key' | 'model'

/** Meanings of a vendor's own error types and codes, in addition to the dialect's. Checked first. */
export interface ErrorWords {
  /** Kinds by message, for codes with several meanings. Patterns of operator errors are anchored, because errors quote callers. */
  readonly messages?: readonly (readonly [pattern: RegExp, kind: FailureKind])[]
  /** Kinds by code or type. A code with dots also counts as its parent (`AccessDenied` for `AccessDenied.Unpurchased`). */
  readonly codes?: Readonly<Record<string, FailureKind>>
  /** Kinds by status, for non-standard ones. Used if neither message nor code decides. */
  readonly statuses?: Readonly<Record<number, FailureKind>>
  /** Codes of operator problems that concern one model, or the key, whatever the status. */
  readonly concerns?: Readonly<Record<string, Concern>>
  /** Codes of rejections that are billed, or may be. */
  readonly billed?: readonly string[]
  /** Subjects of operator problems, by message. */
  readonly concernMessages?: readonly (readonly [pattern: RegExp, concern: Concern])[]
}

export const ERROR_WORDS_MEMBERS = memberNames<ErrorWords>()('messages codes statuses concerns billed concernMessages')

/** Reads failures of one vendor. */
export interface ErrorReader {
  /** Reads a non-2xx answer, or an error in a 2xx. */
  fromAnswer(answer: WireAnswer, nowMs: number): VendorFailure
  /** Reads an error object inside a stream. */
  fromStream(envelope: Record<string, unknown>): VendorFailure
}

// Codes of OpenAI (error codes page) and of compatible servers.
const DIALECT_CODES: ReadonlyMap<string, FailureKind> = new Map<string, FailureKind>([
  ['invalid_api_key', 'operator'],
  ['invalid_organization', 'operator'],
  ['account_deactivated', 'operator'],
  ['insufficient_quota', 'operator'],
  ['billing_hard_limit_reached', 'operator'],
  ['billing_not_active', 'operator'],
  ['credit_balance_exhausted', 'operator'],
  ['model_not_found', 'operator'],
  ['invalid_model', 'operator'],
  ['unknown_model', 'operator'],
  ['model_not_available', 'operator'],
  ['model_not_supported', 'operator'],
  ['model_deprecated', 'operator'],
  ['unsupported_country_region_territory', 'operator'],
  ['context_length_exceeded', 'caller'],
  // Images that the filter withholds, even during generation: the error is then inside a stream, without a status.
  ['moderation_blocked', 'caller'],
  ['content_policy_violation', 'caller'],
  ['image_generation_user_error', 'caller'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['slow_down', 'rate_limited'],
  ['server_is_overloaded', 'unavailable'],
])

// "Project `proj_…` does not have access to model `…`": 403 with the first of these codes, or without one at imitators.
const MODEL_CODES: ReadonlySet<string | undefined> = new Set([
  'model_not_found',
  'model_not_available',
  'model_not_supported',
  'model_deprecated',
])
/** `model.request` is the name of a missing scope of a key. */
const SPEAKS_OF_MODEL = /\bmodel\b(?!\.\w)/i

// The model id is the operator's (the catalog's), never the caller's: callers write public ids. The pattern matches the whole
// sentence from its start, with one word for the id, because errors quote callers in other sentences and after this one. LiteLLM
// adds a prefix: "litellm.NotFoundError: OpenAIException - ".
const ABOUT_THE_MODEL =
  /^(?:litellm\.\w+: (?:\w+Error: )?(?:\w+ - )?)?(?:(?:the|this) )?(?:(?:requested|specified|selected) )?model(?: [`'"]?[^\s`'"]{1,200}[`'"]?)?(?: (?:is|was|has|have|been|does|do|could|currently))* (?:not (?:exist|found|available)|deprecated|retired|decommissioned|no longer|shut ?down)\b/i

// A 400 that names the model because of the request: "This model requires that … contain audio."
const ABOUT_ITS_ABILITIES =
  /\bmodel\b.{0,200}\b(?:requires?|only supports?|does not (?:support|accept|allow)|cannot)\b/is

// Some vendors prefix the text with the status of an inner service, which is more accurate.
const INNER_STATUS = /^<([45]\d\d)>\s/

const CALLER_STATUSES: ReadonlySet<number> = new Set([400, 404, 413, 422])
const TIMEOUT_STATUSES: ReadonlySet<number> = new Set([408, 504, 522, 524])
const OPERATOR_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 410])

/** Creates a reader. `apiKeys` are redacted from all texts, like anything that looks like a key. */
export function errorReader(words: ErrorWords, apiKeys: readonly string[]): ErrorReader {
  const codes = new Map(Object.entries(words.codes ?? {}))
  const kindByCode = (code: string | undefined): FailureKind | undefined => {
    for (let name = code ?? ''; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.')))) {
      const kind = codes.get(name) ?? DIALECT_CODES.get(name)
      if (kind !== undefined) return kind
    }
    return undefined
  }
  const kindOf = (envelope: ErrorEnvelope, status: number): FailureKind => {
    for (const [pattern, kind] of words.messages ?? []) if (pattern.test(envelope.message ?? '')) return kind
    return (
      kindByCode(envelope.code) ??
      kindByCode(envelope.type) ??
      words.statuses?.[status] ??
      kindByStatus(envelope, status)
    )
  }
  const billed = new Set(words.billed)
  const concerns = new Map(Object.entries(words.concerns ?? {}))
  const concernOf = ({ code, message = '' }: ErrorEnvelope, status: number): Concern | undefined => {
    for (const [pattern, concern] of words.concernMessages ?? []) if (pattern.test(message)) return concern
    const isOfModel = MODEL_CODES.has(code) || (status === 403 && SPEAKS_OF_MODEL.test(message))
    return concerns.get(code ?? '') ?? (isOfModel ? 'model' : undefined)
  }
  const failureOf = (envelope: ErrorEnvelope, status: number): VendorFailure => {
    const truerStatus = statusWithin(envelope, status)
    const kind = kindOf(envelope, truerStatus)
    return {
      kind,
      status: kind === 'caller' && status !== 0 ? callerStatus(truerStatus) : status,
      message: redactCredentials(envelope.message ?? defaultMessage(status), apiKeys),
      code: envelope.code,
      type: envelope.type,
      param: envelope.param,
      ...(kind === 'operator' ? { concerns: concernOf(envelope, status) } : {}),
      ...(kind === 'caller' && isTooLarge(envelope) ? OVERSIZED : {}),
      ...(status >= 400 && billed.has(envelope.code ?? '') ? { billedBytes: envelope.madeBytes } : {}),
    }
  }
  return {
    fromAnswer: (answer, nowMs) => {
      const failure = failureOf(errorEnvelopeOf(answer), answer.status)
      return { ...failure, ...retryAfterFrom(failure, answer, nowMs) }
    },
    fromStream: (envelope) => {
      const failure = failureOf({ ...errorEnvelope(envelope), isStructured: true }, 0)
      return { ...failure, ...waitInText(failure) }
    },
  }
}

function kindByStatus(envelope: ErrorEnvelope, status: number): FailureKind {
  if (status < 300) {
    if (!envelope.isStructured) return 'invalid_response'
    return /^invalid|bad_?request|data_?inspection/i.test(envelope.code ?? envelope.type ?? '')
      ? 'caller'
      : 'unavailable'
  }
  if (status < 400) return 'invalid_response'
  if (TIMEOUT_STATUSES.has(status)) return 'timeout'
  // 409: another request is using the object. OpenAI's own clients retry.
  if (status >= 500 || status === 409) return 'unavailable'
  if (status === 429) return 'rate_limited'
  // 403 also stands for a prompt that is too long (Together, "Error codes").
  if (status === 403 && isTooLarge(envelope)) return 'caller'
  if (OPERATOR_STATUSES.has(status)) return 'operator'
  if (!CALLER_STATUSES.has(status)) return 'invalid_response'
  const { message = '', param = 'model' } = envelope
  if (envelope.param === 'model' && (status === 404 || !ABOUT_ITS_ABILITIES.test(message))) return 'operator'
  if (param === 'model' && ABOUT_THE_MODEL.test(message)) return 'operator'
  // A 404 without an error in the API's own layout means that the API is missing, so the base URL is wrong.
  return status === 404 && !envelope.isStructured ? 'operator' : 'caller'
}

const OVERSIZED = { concerns: 'size' } as const

function isTooLarge({ message = '', code, type }: ErrorEnvelope): boolean {
  return isContextOverflow(message, code, type)
}

/** Returns the status that the text or code contains, else the answer's. */
function statusWithin(envelope: ErrorEnvelope, status: number): number {
  // With a list of faults, the text begins with the name of a member, which callers choose.
  const inner = envelope.param === undefined ? INNER_STATUS.exec(envelope.message ?? '') : null
  if (inner !== null) return Number(inner[1])
  const is2xx = status < 300
  return is2xx && /^[45]\d\d$/.test(envelope.code ?? '') ? Number(envelope.code) : status
}

function callerStatus(status: number): number {
  return CALLER_STATUSES.has(status) ? status : 400
}

function defaultMessage(status: number): string {
  if (status >= 300) return `The vendor answered with status ${status}.`
  return 'The vendor sent an answer that is not what it promises.'
}

/** Content of an error body, whatever its layout. */
interface ErrorEnvelope {
  /** Undefined if the body has no readable text. */
  readonly message: string | undefined
  readonly code: string | undefined
  readonly type: string | undefined
  readonly param: string | undefined
  /** Bytes of text that the model had generated (Groq, `failed_generation`). */
  readonly madeBytes: number
  /** Whether the body was an error object of a known layout. False for pages, plain text and anything else. */
  readonly isStructured: boolean
}

// Enough to recognise a proxy's page.
const MAX_TEXT_LENGTH = 500

/** Bounded, because a page may have megabytes and many starts of a title. */
const TITLE = /<title[^>]{0,200}>([^<]{0,500})<\/title>/i

const SILENT: ErrorEnvelope = {
  message: undefined,
  code: undefined,
  type: undefined,
  param: undefined,
  madeBytes: 0,
  isStructured: false,
}

/** Reads the body of an answer as an error. */
function errorEnvelopeOf(answer: WireAnswer): ErrorEnvelope {
  const text = asBuffer(answer.body).toString('utf8').trim()
  const body = parseVendorJson(text)
  const parsed = Array.isArray(body) && isJsonObject(body[0]) ? body[0] : body
  if (isJsonObject(parsed)) return errorEnvelope(parsed)
  // A 2xx body that is not a JSON object may contain an answer, so errors do not show its text.
  if (parsed !== undefined || text === '' || (answer.status >= 200 && answer.status < 300)) return SILENT
  const isPage = text.startsWith('<') || mediaType(firstHeader(answer.headers, 'content-type')) === 'text/html'
  const message = isPage ? TITLE.exec(text)?.[1]?.trim() : text.slice(0, MAX_TEXT_LENGTH)
  return { ...SILENT, message: message === '' ? undefined : message }
}

/**
 * Reads an error object: `{ error: { message, type, param, code } }`, `{ error: "text" }`, flat `{ code, message, type? }`, `{
 * detail, error_code? }` with a text or a list of validation errors, `{ errors: [{ code, message }] }`, `{ base_resp: {
 * status_code, status_msg } }`, and an answer with a failed choice.
 */
function errorEnvelope(body: Record<string, unknown>): ErrorEnvelope {
  const error = body['error']
  if (isJsonObject(error)) return fields(error)
  if (typeof error === 'string') return { ...fields(body), message: error, isStructured: true }
  if (body['detail'] !== undefined) return detailEnvelope(body)
  const failed = failedStatus(body) ?? firstOf(body['errors'])
  if (failed !== undefined) return fields(failed)
  const choice = failedChoice(body['choices'])
  if (choice !== undefined) return choiceEnvelope(choice)
  if (isErrorEnvelope(body)) return fields(body)
  // An object may be an answer.
  return { ...fields({ ...body, message: textOf(body['message']) }), isStructured: false }
}

function firstOf(errors: unknown): Record<string, unknown> | undefined {
  return Array.isArray(errors) && isJsonObject(errors[0]) ? errors[0] : undefined
}

function choiceEnvelope(choice: Record<string, unknown>): ErrorEnvelope {
  const error = isJsonObject(choice['error']) ? fields(choice['error']) : fields({})
  return { ...error, message: error.message ?? `The vendor ended the answer with ${String(choice['finish_reason'])}.` }
}

function fields(error: Record<string, unknown>): ErrorEnvelope {
  const { message, param } = messageAndParam(error['message'])
  return {
    message,
    code: textOf(error['code']),
    type: textOf(error['type']),
    param: textOf(error['param']) ?? param,
    madeBytes: Buffer.byteLength(textOf(error['failed_generation']) ?? ''),
    isStructured: true,
  }
}

function detailEnvelope(body: Record<string, unknown>): ErrorEnvelope {
  return { ...SILENT, ...messageAndParam(body['detail']), code: textOf(body['error_code']), isStructured: true }
}

/** Reads a text, a list of validation errors, an object with either as `detail` (Mistral), or anything else as JSON. */
function messageAndParam(value: unknown): Pick<ErrorEnvelope, 'message' | 'param'> {
  const told = isJsonObject(value) ? (value['detail'] ?? value) : value
  if (Array.isArray(told) && told.some(isJsonObject)) return validationErrors(told.filter(isJsonObject))
  if (typeof told !== 'object' || told === null) return { message: textOf(told), param: undefined }
  return { message: Object.keys(told).length === 0 ? undefined : jsonText(told), param: undefined }
}

/** Returns `undefined` for values that are nested too deep. */
function jsonText(value: object): string | undefined {
  try {
    return JSON.stringify(value).slice(0, MAX_TEXT_LENGTH)
  } catch {
    return undefined
  }
}

function validationErrors(errors: readonly Record<string, unknown>[]): Pick<ErrorEnvelope, 'message' | 'param'> {
  const problems = errors.map((problem) => ({
    place: Array.isArray(problem['loc']) ? problem['loc'].slice(1).join('.') : '',
    text: textOf(problem['msg']) ?? 'invalid',
  }))
  const message = problems.map(({ place, text }) => (place === '' ? text : `${place}: ${text}`)).join('; ')
  return { message, param: textOf(problems[0]?.place) }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

const RETRYABLE_KINDS: ReadonlySet<VendorFailure['kind']> = new Set(['rate_limited', 'unavailable', 'timeout'])

/** Returns the wait that a vendor's answer requests, unless the caller or the operator must change something. */
export function retryAfterFrom(
  { kind }: VendorFailure,
  answer: WireAnswer,
  nowMs: number,
): Pick<VendorFailure, 'retryAfterSeconds'> {
  const seconds = RETRYABLE_KINDS.has(kind) ? retryAfterSeconds(answer.headers, nowMs) : undefined
  return seconds === undefined ? {} : { retryAfterSeconds: seconds }
}

/** "Please try again in 1m2.5s", as in OpenAI's and Groq's errors. */
const WAIT_IN_TEXT = /\btry again in\s+(?:(\d+)\s*h)?(?:(\d+)\s*m(?!s|illi))?(?:(\d+(?:\.\d+)?)\s*(m?s))?/i

/** Limits reset after a day at most. A longer wait is not plausible. */
const MAX_TEXT_WAIT_SECONDS = 86_400

/** Returns the wait that the text of an error requests, because streams have no headers for it. */
function waitInText({ kind, message }: VendorFailure): Pick<VendorFailure, 'retryAfterSeconds'> {
  if (!RETRYABLE_KINDS.has(kind)) return {}
  const [, hours = 0, minutes = 0, count = 0, unit = 's'] = WAIT_IN_TEXT.exec(message) ?? []
  const seconds =
    Number(hours) * 3_600 + Number(minutes) * 60 + Number(count) / (unit.toLowerCase() === 'ms' ? 1_000 : 1)
  return seconds === 0 || seconds > MAX_TEXT_WAIT_SECONDS ? {} : { retryAfterSeconds: seconds }
}

/** Codes and types of vendors that only stand for an overflow. */
const CODES: ReadonlySet<string | undefined> = new Set([
  // OpenAI and most imitators.
  'context_length_exceeded',
  // llama.cpp.
  'exceed_context_size_error',
])

/**
 * Error texts for a prompt, or a prompt with its requested output, that exceeds the model's context window. Limits of bytes, of one
 * field, or of tokens per minute do not match, because a larger window would not help.
 */
const TEXTS: readonly RegExp[] = [
  // OpenAI, Azure, vLLM, DeepSeek, OpenRouter, Llama on Bedrock. Mistral names the limit last.
  /\bmaximum context length\b/i,
  // OpenAI's Responses; MiniMax: "context window exceeds limit".
  /\bexceeds? the context window\b|\bcontext window exceeds\b/i,
  // vLLM, SGLang: "longer than the model's context length", "the model's context length is only 4096 tokens".
  /\blonger than the (?:maximum model length|model's context length)\b|\bmodel's context length is only\b/i,
  // xAI.
  /\bmaximum prompt length is \d+/i,
  // Moonshot; Z.ai.
  /\bexceeded model token limit\b|\bprompt exceeds max length\b/i,
  // llama.cpp, LM Studio: "Trying to keep the first 9000 tokens when context the overflows."
  /\bexceeds the available context size\b|\bgreater than the context length\b|\btokens when context (?:the )?overflows\b/i,
  // Cloudflare.
  /\bexceeded this model context window limit\b/i,
  // Text Generation Inference, Together: "`inputs` tokens + `max_new_tokens` must be <= 8193".
  /`inputs` (?:tokens \+ `max_new_tokens` )?must (?:be <=|have less than) \d+/i,
  // Anthropic, on its own API and in the clouds; Fireworks.
  /\bprompt is too long\b/i,
  /\binput length and `max_tokens` exceed context limit\b/i,
  // Gemini: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."; Vertex AI.
  /\binput token count\b.{0,60}\b(?:exceeds the maximum|only supports up to)\b/is,
  // DashScope: "Range of input length should be [1, 129024]".
  /\brange of input length should be\b|\btotal message token length exceed\b/i,
  // Bedrock: its own text, Nova's, Titan's.
  /\binput is too long for requested model\b|\binput tokens exceeded\b|\btoo many input tokens\b/i,
]

/** Whether a vendor rejects a request because it exceeds the model's context window. */
export function isContextOverflow(message: string, code?: string, type?: string): boolean {
  return CODES.has(code) || CODES.has(type) || TEXTS.some((text) => text.test(message))
}
