import type { BillingFields } from '../../catalog/prices/prices.ts'

/** Price fields of requests for which vendors charge more than by the tokens of their ordinary price list. */
export const CHAT_SURCHARGES = ['service_tier', 'web_search', 'output_audio'] as const

const NO_FIELDS: BillingFields = {}

/** Values at the ordinary price; with `auto` the operator's settings at the vendor decide. */
const ORDINARY_TIERS: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'default', 'standard', 'flex'])

/** The surcharges of a chat request beyond the token price (OpenAI API reference, "Create chat completion"). */
export function chatSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier, web_search_options, enable_search, modalities } = request
  const isTiered = !ORDINARY_TIERS.has(service_tier)
  // Two names for one thing: vendors of this dialect have their own fields beside OpenAI's.
  const searches = (web_search_options !== undefined && web_search_options !== null) || enable_search === true
  const speaks = Array.isArray(modalities) && modalities.includes('audio')
  if (!isTiered && !searches && !speaks) return NO_FIELDS
  return {
    ...(isTiered ? { service_tier: String(service_tier) } : {}),
    ...(searches ? { web_search: 'true' } : {}),
    ...(speaks ? { output_audio: 'true' } : {}),
  }
}
