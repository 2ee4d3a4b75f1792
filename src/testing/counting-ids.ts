import type { Ids } from '../core/ids.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'

/** Settings of {@link countingIds}. */
export interface CountingIdsOptions {
  /** The number of the first id; default 1. */
  readonly first?: number
}

const COUNTING_IDS_OPTIONS = {
  first: true,
} satisfies MemberNames<CountingIdsOptions>

/** Ids that count up in the usual shape: `req_00000000000000000000000000000001`, then `…2`, whatever the prefix. */
export function countingIds(options: CountingIdsOptions = {}): Ids {
  checkMembers(options, COUNTING_IDS_OPTIONS, 'countingIds')
  let count = options.first ?? 1
  return { next: (prefix) => `${prefix}_${(count++).toString(16).padStart(32, '0')}` }
}
