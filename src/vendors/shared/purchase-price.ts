import { isJsonObject } from '../../core/json.ts'

/**
 * Does a member of `usage` tell what the operator pays the vendor? `cost`, `cost_details` and `is_byok` of OpenRouter,
 * `cost_in_usd_ticks` of xAI, `cost` of Perplexity and the `cost_usd` in its `tool_calls_details`, `estimated_cost` of DeepInfra.
 */
function isPurchasePrice(name: string): boolean {
  return name.includes('cost') || name === 'is_byok' || name === 'tool_calls_details'
}

/** True for usage that tells what the operator pays. */
export function tellsPurchasePrice(usage: unknown): usage is Record<string, unknown> {
  if (!isJsonObject(usage)) return false
  for (const name in usage) if (isPurchasePrice(name)) return true
  return false
}

/** The usage without what the operator pays; the same object where it does not tell. */
export function withoutPurchasePrice(usage: unknown): unknown {
  if (!tellsPurchasePrice(usage)) return usage
  return Object.fromEntries(Object.entries(usage).filter(([name]) => !isPurchasePrice(name)))
}
