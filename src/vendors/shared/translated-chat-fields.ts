import { GatewayError } from '../../core/errors.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { INLINE_MODERATION, refuseLostBlocking } from '../../endpoints/inline-moderation.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ChatField } from './chat-fields.ts'

/** Fields that current SDKs send beyond those known by name. */
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
 * The treatment of a field in translation. `mapped`: it has an equivalent, or the gateway serves it itself; a value that
 * the current model lacks is still reported. `dropped`: left out and reported. `refused`: 400, because the answer would
 * differ. Values that change nothing are neither reported nor refused.
 */
export type TranslationRule = 'mapped' | 'dropped' | 'refused'

/** A rule for every field, for a vendor with another dialect. */
export type TranslationTable = Readonly<Record<ChatField | ExtraField, TranslationRule>>

/** The billing fields of request fields with a surcharge. */
const SURCHARGES = { service_tier: 'service_tier', web_search_options: 'web_search' } as const

/** Billing fields of surcharges that a vendor never hears of, by its table. */
export function surchargesLeftOut(table: TranslationTable): ReadonlySet<string> {
  const fields = Object.keys(SURCHARGES) as (keyof typeof SURCHARGES)[]
  const dropped = fields.filter((field) => table[field] === 'dropped').map((field) => SURCHARGES[field])
  // Fields that no table names are dropped.
  return new Set([...dropped, 'provider_routing'])
}

/** Checks the fields of a request and reports those that are left out, unknown ones included. */
export type FieldCheck = (request: ChatRequest, report: (field: string) => void) => void

/**
 * Makes the check of a vendor's table. The check throws GatewayError `unsupported_parameter` naming a field that must not be
 * left out.
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
