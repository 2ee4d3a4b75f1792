import { checkModelRows } from '../../catalog/check-model-rows.ts'
import { checkGivenMembers, checkMembers, type MemberNames } from '../../core/known-members.ts'
import type { WeightedKey } from '../vendor.ts'

const WEIGHTED_KEY_MEMBERS = { key: true, weight: true } satisfies MemberNames<WeightedKey>

/**
 * Rejects members that the options of a factory, their models and their keys do not have.
 * @throws TypeError naming the path and the nearest known member.
 */
export function checkVendorOptions(
  factory: string,
  options: { readonly apiKey?: unknown; readonly models?: unknown },
  names: Readonly<Record<string, true>>,
): void {
  checkGivenMembers(options, names, factory)
  checkModelRows(options.models, factory)
  if (!Array.isArray(options.apiKey)) return
  for (const [index, key] of options.apiKey.entries())
    if (typeof key === 'object') checkMembers(key, WEIGHTED_KEY_MEMBERS, factory, `apiKey[${index}]`)
}
