import type { BillingMode } from '../stores/principal.ts'

/** Billing mode of a gateway, or `off`. A mode alone, such as `'metered'`, is short for `{ mode: 'metered' }`. */
export type BillingOption = BillingMode | 'off' | { readonly mode: BillingMode | 'off' }

const MODES: readonly unknown[] = ['prepaid', 'metered', 'off'] satisfies (BillingMode | 'off')[]

/** @throws TypeError for an invalid option. */
export function billingModeOf(option: BillingOption | undefined): BillingMode | 'off' {
  const mode: unknown =
    option === undefined ? 'prepaid' : typeof option === 'object' && option !== null ? option.mode : option
  if (!MODES.includes(mode)) throw new TypeError("createGateway: billing must be 'prepaid', 'metered' or 'off'")
  return mode as BillingMode | 'off'
}
