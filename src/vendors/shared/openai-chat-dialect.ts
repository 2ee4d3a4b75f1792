import { isJsonObject } from '../../core/json.ts'
import { type CacheTime, chatCacheTime } from '../../endpoints/cache-marks.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatOperation, VendorCall, VendorFailure } from '../vendor.ts'
import type { KeyHeaders } from './bearer-headers.ts'
import type { FieldRules } from './field-rules.ts'

/** Mends the answers of a server whose messages need more than every server's. */
export interface AnswerRepair {
  /** Edits a whole answer in place; true when it did. */
  whole(completion: Record<string, unknown>): boolean
  /** Mends the chunks of one stream, in order, in place; each call tells whether it changed the chunk. */
  chunks(): (chunk: Record<string, unknown>) => boolean
  /** True when only chunks with tool calls may need it, so that others pass unread. */
  readonly isOfToolCalls?: true
}

/** The path of an operation, or how it follows from the vendor's own id of the model. */
export type OperationPath = string | ((upstream: string) => string)

/** The differences between servers of OpenAI's chat completions dialect. */
export interface OpenAIChatDialect {
  /** Below the vendor's origin. */
  readonly path: OperationPath
  /** The headers of a call; a bearer key by default. */
  readonly headers?: KeyHeaders | undefined
  /** The field table for a model, by the vendor's own id. */
  readonly rulesFor: (upstream: string) => FieldRules<ChatRequest>
  /** True for servers whose streamed tool calls look whole and are not. Calls that lack a member are mended anyway. */
  readonly repairsToolCalls?: true | undefined
  /** For servers whose chunks must be read. */
  readonly answerRepair?: AnswerRepair | undefined
  /**
   * Does a model, by the vendor's own id, answer this request in a stream only? Whole answers are then collected from one. Absent: no.
   */
  readonly streamsOnly?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** False for servers that report usage in every stream unasked. */
  readonly asksForUsage?: boolean | undefined
  /** False for servers that take pictures as bytes only. */
  readonly takesImageUrls?: boolean | undefined
  /** Does a model, by the vendor's own id, get the text of its reasoning back? Absent: no. */
  readonly replaysReasoning?: ((upstream: string) => boolean) | undefined
  /** Are marks of Anthropic's dialect understood for a model, by the vendor's own id? Absent: no. */
  readonly takesCacheControl?: ((upstream: string) => boolean) | undefined
  /**
   * Does a model, by the vendor's own id, cache for as long as marks of Anthropic's dialect ask, so that this is the lifetime of what
   * a report counts without one? Absent: no.
   */
  readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined
  /** Returns what a model accepts of the fields that translations write. If omitted, all is sent. */
  readonly abilities?: ChatOperation['abilities']
  /** Does a model, by the vendor's own id, reason unseen for this request? Absent: its reasoning is shown. */
  readonly reasonsUnseen?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** True for servers whose models may refuse system messages after the first: translated conversations get one. */
  readonly systemFirst?: true | undefined
  /** True for servers that carry out the field `moderation`. Absent: it is left out, and a request to block is refused. */
  readonly moderates?: true | undefined
  /** Reads an error envelope that came inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** The lifetime of what a call writes to its vendor's cache, where only the marks of the prompt tell it. */
export function markedCacheTime({ model, request }: VendorCall<ChatRequest>, dialect: ReadDialect): CacheTime {
  return dialect.cachesAsMarked?.(model.upstream) === true ? chatCacheTime(request) : 'none'
}

/** What of the dialect a whole answer needs. */
export type ReadDialect = Pick<OpenAIChatDialect, 'answerRepair' | 'cachesAsMarked'> &
  Partial<Pick<OpenAIChatDialect, 'streamFailure'>>

/** The path for a model. */
export function pathFor(path: OperationPath, upstream: string): string {
  return typeof path === 'string' ? path : path(upstream)
}

/** True for a JSON object that is an error and not a chunk or completion, whatever its status. */
export function isErrorEnvelope(body: Record<string, unknown>): boolean {
  if (body['error'] !== undefined && body['error'] !== null) return true
  if (Array.isArray(body['choices']) && body['choices'].length > 0) return false
  if (body['object'] === 'error') return true
  const { code, status, message, detail } = body
  if (typeof code === 'string' && typeof message === 'string') return true
  // By numbers some servers tell success as well, which comes with something.
  const isBare = (body['data'] ?? body['text'] ?? undefined) === undefined
  if (isBare && isFailure(code) && typeof message === 'string') return true
  if (isBare && isFailure(status) && typeof detail === 'string') return true
  return (body['success'] === false && Array.isArray(body['errors'])) || failedStatus(body) !== undefined
}

function isFailure(code: unknown): boolean {
  return typeof code === 'number' && code >= 400
}

/** The error in `{ base_resp: { status_code, status_msg } }`, by which a server reports failures in 200 answers. */
export function failedStatus(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const status = body['base_resp']
  if (!isJsonObject(status) || typeof status['status_code'] !== 'number' || status['status_code'] === 0)
    return undefined
  return { code: status['status_code'], message: status['status_msg'] }
}

/** Finish reasons by which servers of the dialect say that they failed on the way. */
const FAILING_REASONS: ReadonlySet<unknown> = new Set(['error', 'network_error', 'insufficient_system_resource'])

/** The choice that ended with a failure of the vendor, if one did. Its content is no answer. */
export function failedChoice(choices: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(choices)) return undefined
  return choices.find((choice) => isJsonObject(choice) && FAILING_REASONS.has(choice['finish_reason'])) as
    | Record<string, unknown>
    | undefined
}
