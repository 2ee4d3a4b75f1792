import { GatewayError } from '../../core/errors.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { INLINE_MODERATION, refuseLostBlocking } from '../../endpoints/inline-moderation.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ChatField } from './chat-fields.ts'

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

/** A rule for every field, for a vendor with another dialect. */
export type TranslationTable = Readonly<Record<ChatField | ExtraField, TranslationRule>>

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
