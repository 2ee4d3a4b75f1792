import { GatewayError } from '../../core/errors.ts'
import { type CacheMark, cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { INLINE_MODERATION, refuseLostBlocking } from '../../endpoints/moderations/moderations-endpoint.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ChatField } from './openai-chat-dialect.ts'

/** Fields that current SDKs send in addition to those known by name. */
type ExtraField =
  | 'audio'
  | 'function_call'
  | 'functions'
  | 'metadata'
  | 'modalities'
  | 'moderation'
  | 'prediction'
  | 'prompt_cache_key'
  | 'prompt_cache_options'
  | 'prompt_cache_retention'
  | 'safety_identifier'
  | 'service_tier'
  | 'store'
  | 'verbosity'
  | 'web_search_options'

/**
 * Treatment of a field in translation. `mapped`: it has an equivalent, or the gateway handles it itself; a value that the current
 * model lacks is still reported. `dropped`: omitted and reported. `refused`: 400, because the answer would differ. Values without
 * effect are neither reported nor rejected.
 */
export type TranslationRule = 'mapped' | 'dropped' | 'refused'

type TableField = ChatField | ExtraField

/** A rule for every field, for a vendor with another dialect. */
export type TranslationTable = Readonly<Record<TableField, TranslationRule>>

/** Fields by their treatment. */
type FieldLists = Readonly<Record<TranslationRule, readonly TableField[]>>

/** Creates the table of a vendor. It does not compile unless the lists have every field. */
export function translationTable<Lists extends FieldLists>(
  lists: Lists & (TableField extends Lists[TranslationRule][number] ? unknown : never),
): TranslationTable {
  const rules = Object.entries(lists) as [TranslationRule, readonly TableField[]][]
  return Object.fromEntries(rules.flatMap(([rule, fields]) => fields.map((field) => [field, rule]))) as TranslationTable
}

/** Billing fields of request fields with a surcharge. */
const SURCHARGES = { service_tier: 'service_tier', web_search_options: 'web_search' } as const

/** Returns the billing fields of surcharges that are never sent to a vendor, according to its table. */
export function surchargesLeftOut(table: TranslationTable): ReadonlySet<string> {
  const fields = Object.keys(SURCHARGES) as (keyof typeof SURCHARGES)[]
  const dropped = fields.filter((field) => table[field] === 'dropped').map((field) => SURCHARGES[field])
  // Fields that no table names are dropped.
  return new Set([...dropped, 'provider_routing'])
}

/** Checks the fields of a request and reports dropped ones, including unknown fields. */
export type FieldCheck = (request: ChatRequest, report: (field: string) => void) => void

/**
 * Creates the check of a vendor's table. The check throws GatewayError `unsupported_parameter` naming a field that must not be
 * dropped.
 */
export function fieldCheck(table: TranslationTable): FieldCheck {
  const rules: ReadonlyMap<string, TranslationRule> = new Map(Object.entries(table))
  return (request, report) => {
    for (const field of Object.keys(request)) {
      const value = request[field]
      if (changesNothing(field, value)) continue
      const rule = rules.get(field) ?? 'dropped'
      if (field === INLINE_MODERATION && rule !== 'mapped') refuseLostBlocking(value)
      if (rule === 'dropped') report(field)
      if (rule === 'refused') {
        throw new GatewayError('unsupported_parameter', {
          message: `The model does not support this value of ${field}.`,
          param: field,
        })
      }
    }
  }
}

/**
 * Reports the marks of a chat that are not sent to a vendor.
 * @param isCarried Whether a mark of a message is sent. By default, no mark is. Marks of tools never are.
 */
export function reportLostMarks(
  { messages, tools }: ChatRequest,
  report: (field: string) => void,
  isCarried?: (mark: CacheMark, message: ChatMessage) => boolean,
): void {
  for (const message of messages) {
    if (!Array.isArray(message.content)) continue
    for (const part of message.content) {
      const mark = cacheMarkOf(part)
      if (mark !== undefined && isCarried?.(mark, message) !== true) report(mark.field)
    }
  }
  for (const tool of tools ?? []) {
    const mark = cacheMarkOf(tool)
    if (mark !== undefined) report(mark.field)
  }
}

/** A request that a vendor gets which does not moderate. */
export interface UnmoderatedRequest<Request> {
  /** Request without its moderation. Unchanged, the same object, unless the caller requests moderation. */
  readonly request: Request
  /** The dropped field, if it requests scores. */
  readonly dropped: readonly string[]
}

const NOTHING: readonly string[] = []
const DROPPED: readonly string[] = [INLINE_MODERATION]

/**
 * Leaves the field `moderation` out, which servers of the dialect other than OpenAI's own would ignore.
 * @throws GatewayError `unsupported_parameter` for a request that wants to be blocked.
 */
export function withoutModeration<Request extends Readonly<Record<string, unknown>>>(
  request: Request,
): UnmoderatedRequest<Request> {
  const { [INLINE_MODERATION]: moderation, ...rest } = request
  if (moderation === undefined) return { request, dropped: NOTHING }
  refuseLostBlocking(moderation)
  return { request: rest as unknown as Request, dropped: moderation === null ? NOTHING : DROPPED }
}
