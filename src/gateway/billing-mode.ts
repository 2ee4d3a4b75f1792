import type { BillingMode } from '../stores/principal.ts'

/** How a gateway bills: in one of the modes, or not at all. `'off'` alone is short for `{ mode: 'off' }`. */
export type BillingOption = 'off' | { readonly mode: BillingMode | 'off' }

const MODES: readonly unknown[] = ['prepaid', 'metered', 'off'] satisfies (BillingMode | 'off')[]

/** @throws TypeError for an option that is none. */
export function billingModeOf(option: BillingOption | undefined): BillingMode | 'off' {
  if (option !== undefined && option !== 'off' && (typeof option !== 'object' || option === null))
    throw new TypeError("createGateway: billing must be 'off' or { mode: 'prepaid' } or { mode: 'metered' }")
  const mode: unknown = option === undefined ? 'prepaid' : option === 'off' ? 'off' : option.mode
  if (!MODES.includes(mode)) throw new TypeError("createGateway: billing.mode must be 'prepaid', 'metered' or 'off'")
  return mode as BillingMode | 'off'
}
