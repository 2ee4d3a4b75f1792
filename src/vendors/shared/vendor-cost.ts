import { isJsonObject } from '../../core/json.ts'
import { ORDINARY_TIER, type Usage } from '../../core/usage.ts'

/**
 * Whether a member of `usage` shows the operator's cost: `cost`, `cost_details` and `is_byok` of OpenRouter, `cost_in_usd_ticks` of
 * xAI, `cost` of Perplexity and the `cost_usd` in its `tool_calls_details`, `estimated_cost` of DeepInfra.
 */
function isPurchasePrice(name: string): boolean {
  return name.includes('cost') || name === 'is_byok' || name === 'tool_calls_details'
}

/** Whether usage shows the operator's cost. */
export function tellsPurchasePrice(usage: unknown): usage is Record<string, unknown> {
  if (!isJsonObject(usage)) return false
  for (const name in usage) if (isPurchasePrice(name)) return true
  return false
}

/** Removes the operator's cost from usage. Returns the same object if it shows none. */
export function withoutPurchasePrice(usage: unknown): unknown {
  if (!tellsPurchasePrice(usage)) return usage
  return Object.fromEntries(Object.entries(usage).filter(([name]) => !isPurchasePrice(name)))
}

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
