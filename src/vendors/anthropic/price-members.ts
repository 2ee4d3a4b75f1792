import type { PriceMembers } from '../../endpoints/price-members.ts'

/**
 * Price members of Anthropic's API (types of `@anthropic-ai/sdk` 1.14). The price fields of the endpoint have the others: service
 * tier, speed, region, tools that run at the vendor, betas and fallbacks.
 */
export const ANTHROPIC_PRICE_MEMBERS: PriceMembers = {
  // Another organization pays then, at terms that the operator does not know.
  messages: [{ path: 'billing_policy.bill_to', field: 'billing_policy', ordinary: ['self'] }],
}
