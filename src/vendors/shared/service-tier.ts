import { ORDINARY_TIER, type Usage } from '../../core/usage.ts'

/** Names of the ordinary tier at vendors (OpenAI, Anthropic, Groq, Vertex AI). Batches have prices of their own. */
const ORDINARY_TIERS: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'batch'])

/** Values of a request that are charged at the ordinary price, unless the vendor reports another tier. */
const ORDINARY_REQUESTS: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'flex', ...ORDINARY_TIERS])

/**
 * Returns usage with the tier of service that decides its price. Usage stays as it is if the vendor reports no tier, or the ordinary
 * one for a request at the ordinary price.
 * @param told Tier that the answer names.
 * @param asked Tier that the request names, if any.
 */
export function usageAtTier(usage: Usage | undefined, told: unknown, asked?: unknown): Usage | undefined {
  if (usage === undefined || typeof told !== 'string' || told === '' || told === 'auto') return usage
  const tier = told.toLowerCase()
  if (!ORDINARY_TIERS.has(tier)) return { ...usage, serviceTier: tier }
  return ORDINARY_REQUESTS.has(asked) ? usage : { ...usage, serviceTier: ORDINARY_TIER }
}
