import { userInfo } from 'node:os'
import { auditState, type ChangeSubject } from '../admin/audit-state.ts'
import type { Audit } from '../gateway/audit.ts'
import type { Administration } from './administration.ts'

type Method = (...args: readonly unknown[]) => Promise<unknown>

/** Changes of the command line, named as the admin API names them, and what their first argument identifies. */
const CHANGES: Readonly<Record<string, readonly [action: string, subject?: 'account' | 'key']>> = {
  'accounts.create': ['create_account'],
  'accounts.update': ['update_account', 'account'],
  'accounts.freeze': ['freeze_account', 'account'],
  'accounts.unfreeze': ['unfreeze_account', 'account'],
  'accounts.credit': ['credit_account', 'account'],
  'accounts.adjust': ['adjust_account', 'account'],
  'accounts.refund': ['refund_charge'],
  'holds.settle': ['settle_hold'],
  'holds.void': ['void_hold'],
  'keys.create': ['create_key'],
  'keys.update': ['update_key', 'key'],
  'keys.revoke': ['revoke_key', 'key'],
  'keys.rotate': ['rotate_key', 'key'],
  'webhooks.secret': ['read_webhook_secret'],
  'webhooks.rotateSecret': ['rotate_webhook_secret'],
  'webhooks.resend': ['resend_delivery'],
  'usage.rebuild': ['rebuild_usage'],
}

/** Returns the administration of a store whose changes are recorded in its audit. */
export function audited(administration: Administration, audit: Audit): Administration {
  const changed = new Map<string, Record<string, unknown>>()
  for (const [name, [action, kind]] of Object.entries(CHANGES)) {
    const [group = '', method = ''] = name.split('.')
    const methods = changed.get(group) ?? { ...administration[group as keyof Administration] }
    changed.set(group, methods)
    const change = methods[method] as Method
    methods[method] = async (...args: readonly unknown[]) => {
      const first = typeof args[0] === 'string' ? args[0] : undefined
      const subject: ChangeSubject = kind === undefined ? {} : { [kind]: first }
      const before = await auditState(administration, subject)
      const result = await change(...args)
      await audit.record({
        operator: userName(),
        action,
        subject: first ?? idOf(args[0]) ?? idOf(result),
        source: 'command_line',
        address: undefined,
        requestId: undefined,
        code: undefined,
        input: { arguments: args },
        before,
        after: await auditState(administration, subject),
      })
      return result
    }
  }
  return { ...administration, ...Object.fromEntries(changed) }
}

/** Keys are recorded with their account, as over the admin API. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { accountId, id } = value as { readonly accountId?: unknown; readonly id?: unknown }
  return [accountId, id].find((text) => typeof text === 'string') as string | undefined
}

/** Some containers have no entry for their user. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
