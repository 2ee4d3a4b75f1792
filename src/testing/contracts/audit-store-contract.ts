import { AUDIT_RETENTION_MS, type AuditEntry, type AuditStore } from '../../stores/audit-store.ts'
import { ACCOUNT_ID, type ContractRunner, type ContractSubject, contractCases, NOW_MS } from './contract-runner.ts'

/** One case for each guarantee of {@link AuditStore}. */
export function describeAuditStore(runner: ContractRunner, subject: ContractSubject<AuditStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const idsOf = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id)

  describe('audit store contract', () => {
    check('returns an entry with every field it was added with', async (store) => {
      const bare = { subject: undefined, address: undefined, requestId: undefined, before: undefined, after: undefined }
      const failed = exampleEntry('aud_2', 1, { ...bare, source: 'command_line', code: 'store_unavailable' })
      await store.add(exampleEntry('aud_1', 0))
      await store.add(failed)
      expect(await store.list({ limit: 10 })).toEqual([failed, exampleEntry('aud_1', 0)])
    })

    check('lists pages by subject and time, newest first', async (store) => {
      for (const [id, afterMs] of [
        ['aud_a', 0],
        ['aud_b', 5],
        ['aud_c', 5],
        ['aud_d', 9],
      ] as const)
        await store.add(exampleEntry(id, afterMs))
      await store.add(exampleEntry('aud_e', 7, { subject: 'other' }))
      const first = await store.list({ subject: ACCOUNT_ID, limit: 2 })
      const after = { createdAtMs: first[1]!.createdAtMs, id: first[1]!.id }
      expect(idsOf(first)).toEqual(['aud_d', 'aud_c'])
      expect(idsOf(await store.list({ subject: ACCOUNT_ID, after, limit: 2 }))).toEqual(['aud_b', 'aud_a'])
      const range = { fromMs: NOW_MS + 5, untilMs: NOW_MS + 9 }
      expect(idsOf(await store.list({ ...range, limit: 9 }))).toEqual(['aud_e', 'aud_c', 'aud_b'])
      expect(await store.list({ subject: '\u0000', limit: 9 })).toEqual([])
    })

    check('deletes entries that are a year old when another is added', async (store) => {
      await store.add(exampleEntry('aud_old', 0))
      await store.add(exampleEntry('aud_young', 1))
      await store.add(exampleEntry('aud_new', AUDIT_RETENTION_MS))
      expect(idsOf(await store.list({ limit: 9 }))).toEqual(['aud_new', 'aud_young'])
    })
  })
}

function exampleEntry(id: string, afterMs: number, overrides: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id,
    createdAtMs: NOW_MS + afterMs,
    operator: 'olga',
    action: 'update_account',
    subject: ACCOUNT_ID,
    source: 'admin_api',
    address: '192.0.2.1',
    requestId: 'req_1',
    code: undefined,
    input: { name: 'New' },
    before: { name: null },
    after: { name: 'New' },
    ...overrides,
  }
}
