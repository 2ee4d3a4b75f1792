import { isJsonObject } from '../../core/json.ts'
import { type CacheTime, chatCacheTime } from '../../endpoints/cache-marks.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatOperation, VendorCall, VendorFailure } from '../vendor.ts'
import type { KeyHeaders } from './bearer-headers.ts'
import type { FieldRules } from './field-rules.ts'

/** Repairs the answers of a server beyond the common repairs. */
export interface AnswerRepair {
  /** Edits a whole answer in place. Returns whether it changed. */
  whole(completion: Record<string, unknown>): boolean
  /** Returns a function that edits the chunks of one stream in place, in order, and returns whether a chunk changed. */
  chunks(): (chunk: Record<string, unknown>) => boolean
  /** Whether only chunks with tool calls may need it, so that others are passed on unread. */
  readonly isOfToolCalls?: true
}

/** Path of an operation, or a function of the vendor's own model id. */
export type OperationPath = string | ((upstream: string) => string)

/** The differences between servers of OpenAI's chat completions dialect. */
export interface OpenAIChatDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** Returns the field table of a model, by the vendor's own id. */
  readonly rulesFor: (upstream: string) => FieldRules<ChatRequest>
  /** Whether streamed tool calls may look complete and are not. Calls that lack a member are always repaired. */
  readonly repairsToolCalls?: true | undefined
  /** Repair for servers whose chunks must be read. */
  readonly answerRepair?: AnswerRepair | undefined
  /**
   * Whether a model, by the vendor's own id, answers this request only in a stream, which the gateway then collects. Default false.
   */
  readonly streamsOnly?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** False for servers that report usage in every stream by default. */
  readonly asksForUsage?: boolean | undefined
  /** False for servers that accept images only as bytes. */
  readonly takesImageUrls?: boolean | undefined
  /** Whether a model, by the vendor's own id, receives the text of its reasoning again. Default false. */
  readonly replaysReasoning?: ((upstream: string) => boolean) | undefined
  /** Whether a model, by the vendor's own id, supports marks of Anthropic's dialect. Default false. */
  readonly takesCacheControl?: ((upstream: string) => boolean) | undefined
  /**
   * Whether a model, by the vendor's own id, caches for as long as marks of Anthropic's dialect request, so that reports without a
   * lifetime have that one. Default false.
   */
  readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined
  /** Returns which fields written by translations a model accepts. If omitted, all are sent. */
  readonly abilities?: ChatOperation['abilities']
  /** Whether a model, by the vendor's own id, reasons invisibly for this request. By default, its reasoning is shown. */
  readonly reasonsUnseen?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** Whether models may reject system messages after the first, so that translated conversations have only one. */
  readonly systemFirst?: true | undefined
  /** Whether the server supports the field `moderation`. Default false: it is dropped, and a request to block is rejected. */
  readonly moderates?: true | undefined
  /** Reads an error envelope inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Returns the lifetime of a call's cache writes, if only the marks of the prompt state it. */
export function markedCacheTime({ model, request }: VendorCall<ChatRequest>, dialect: ReadDialect): CacheTime {
  return dialect.cachesAsMarked?.(model.upstream) === true ? chatCacheTime(request) : 'none'
}

/** Parts of the dialect for whole answers. */
export type ReadDialect = Pick<OpenAIChatDialect, 'answerRepair' | 'cachesAsMarked'> &
  Partial<Pick<OpenAIChatDialect, 'streamFailure'>>

/** The path for a model. */
export function pathFor(path: OperationPath, upstream: string): string {
  return typeof path === 'string' ? path : path(upstream)
}

/** Whether a JSON object is an error rather than a chunk or completion, whatever its status. */
export function isErrorEnvelope(body: Record<string, unknown>): boolean {
  if (body['error'] !== undefined && body['error'] !== null) return true
  if (Array.isArray(body['choices']) && body['choices'].length > 0) return false
  if (body['object'] === 'error') return true
  const { code, status, message, detail } = body
  if (typeof code === 'string' && typeof message === 'string') return true
  // Some servers also report success by number, together with content.
  const isBare = (body['data'] ?? body['text'] ?? undefined) === undefined
  if (isBare && isFailure(code) && typeof message === 'string') return true
  if (isBare && isFailure(status) && typeof detail === 'string') return true
  return (body['success'] === false && Array.isArray(body['errors'])) || failedStatus(body) !== undefined
}

function isFailure(code: unknown): boolean {
  return typeof code === 'number' && code >= 400
}

/** Returns the error in `{ base_resp: { status_code, status_msg } }`, the form of failures in 200 answers of a server. */
export function failedStatus(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const status = body['base_resp']
  if (!isJsonObject(status) || typeof status['status_code'] !== 'number' || status['status_code'] === 0)
    return undefined
  return { code: status['status_code'], message: status['status_msg'] }
}

/** Finish reasons with which servers report a failure during the answer. */
const FAILING_REASONS: ReadonlySet<unknown> = new Set(['error', 'network_error', 'insufficient_system_resource'])

/** Returns the choice that ended with a failure of the vendor, if any. Its content is not an answer. */
export function failedChoice(choices: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(choices)) return undefined
  return choices.find((choice) => isJsonObject(choice) && FAILING_REASONS.has(choice['finish_reason'])) as
    | Record<string, unknown>
    | undefined
}
