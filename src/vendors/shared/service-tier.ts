import { ORDINARY_TIER, type Usage } from '../../core/usage.ts'

/** Names of the ordinary tier at vendors (OpenAI, Anthropic, Groq, Vertex AI). Batches have prices of their own. */
const ORDINARY_TIERS: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'batch'])

/** Values of a request that are charged at the ordinary price, unless the vendor reports another tier. */
const ORDINARY_REQUESTS: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'flex', ...ORDINARY_TIERS])

/**
 * Returns usage with the tier of service that decides its price. Usage is unchanged if the vendor reports no tier, or the ordinary
 * one for a request at the ordinary price.
 * @param told Tier that the answer names.
 * @param asked Tier that the request names, if any.
 */
export function usageAtTier(usage: Usage | undefined, told: unknown, asked?: unknown): Usage | undefined {
  const serviceTier = usage && usedTier(told, asked)
  return serviceTier === undefined ? usage : { ...usage, serviceTier }
}

/** Returns the tier of service that decides the price of a call; `undefined` if it is the requested one. See {@link usageAtTier}. */
export function usedTier(told: unknown, asked?: unknown): string | undefined {
  if (typeof told !== 'string' || told === '' || told === 'auto') return undefined
  const tier = told.toLowerCase()
  if (!ORDINARY_TIERS.has(tier)) return tier
  return ORDINARY_REQUESTS.has(asked) ? undefined : ORDINARY_TIER
}
