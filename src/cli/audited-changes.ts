import { userInfo } from 'node:os'
import { auditState, type ChangeSubject } from '../admin/audit-state.ts'
import type { Audit } from '../gateway/audit.ts'
import type { Administration } from './administration.ts'
import { oneLine, type Terminal } from './terminal.ts'

type Method = (...args: readonly unknown[]) => Promise<unknown>

/** Changes of the command line by their name in the admin API, and the kind of object that their first argument identifies. */
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

/**
 * Returns the administration of a store whose changes are recorded in its audit. If an entry cannot be written, the change stays and
 * its result is returned. The terminal gets a warning that names the change, and the process exits with status 1.
 */
export function audited(administration: Administration, audit: Audit, terminal: Terminal): Administration {
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
      const id = first ?? idOf(args[0]) ?? idOf(result)
      try {
        await audit.record({
          operator: userName(),
          action,
          subject: id,
          source: 'command_line',
          address: undefined,
          requestId: undefined,
          code: undefined,
          input: { arguments: args },
          before,
          after: await auditState(administration, subject),
        })
      } catch (cause) {
        // Without the result, the operator would repeat the change.
        const change = id === undefined ? action : `${action} of ${id}`
        const text = `the change ${change} was made, but could not be added to the audit: ${reasonOf(cause)}`
        terminal.warn?.(oneLine(text))
        terminal.fail?.()
      }
      return result
    }
  }
  return { ...administration, ...Object.fromEntries(changed) }
}

/** An error of the gateway has the driver's error as its cause. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as Error
  return cause instanceof Error ? cause.message : String(cause)
}

/** Keys are recorded with their account, as in the admin API. */
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
