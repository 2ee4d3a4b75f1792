import type { Accounts } from '../gateway/accounts.ts'
import type { Audit } from '../gateway/audit.ts'
import type { Holds } from '../gateway/holds.ts'
import type { Keys } from '../gateway/keys.ts'
import type { UsageReports } from '../gateway/usage.ts'
import type { Webhooks } from '../gateway/webhooks.ts'

/** Administration of a store. */
export interface Administration {
  readonly accounts: Accounts
  readonly keys: Keys
  readonly holds: Holds
  readonly webhooks: Webhooks
  readonly usage: UsageReports
  readonly audit: Audit
}
