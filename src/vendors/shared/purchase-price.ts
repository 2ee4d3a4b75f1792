import { isJsonObject } from '../../core/json.ts'

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
