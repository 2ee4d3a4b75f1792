import type { BatchOutcome, BatchStore, FileRecord, FileStore } from '../../stores/file-store.ts'
import { ACCOUNT_ID, type ContractRunner, type ContractSubject, contractCases, NOW_MS } from './contract-runner.ts'

const now = NOW_MS

/** One case for each guarantee of {@link FileStore}. */
export function describeFileStore(runner: ContractRunner, subject: ContractSubject<FileStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('file store contract', () => {
    check('gives a file to its owner as it was saved', async (store) => {
      await store.save(exampleFile())
      expect(await store.find(ACCOUNT_ID, 'file_1', now)).toEqual(exampleFile())
      const renamed = exampleFile({
        filename: '\u0000 "\ud83d\ude00" \ud800',
        byteLength: 2 ** 40,
        mimeType: 'text/plain',
      })
      await store.save(renamed)
      expect(await store.find(ACCOUNT_ID, 'file_1', now)).toEqual(renamed)
    })

    check('knows neither unknown, foreign nor expired files, by none of its methods', async (store) => {
      await store.save(exampleFile())
      for (const [account, id] of [
        ['account_2', 'file_1'],
        [ACCOUNT_ID, 'file_9'],
        [ACCOUNT_ID, '\u0000'],
        [ACCOUNT_ID, "' OR '1' = '1"],
      ] as const) {
        expect(await store.find(account, id, now)).toEqual(undefined)
        expect(await store.delete(account, id)).toEqual(false)
      }
      expect(await store.list('account_2', { limit: 10, order: 'desc' }, now)).toEqual({ files: [], hasMore: false })
      expect(await store.find(ACCOUNT_ID, 'file_1', exampleFile().expiresAtMs)).toEqual(undefined)
    })

    check('lists in pages and both orders', async (store) => {
      for (const [number, purpose] of ['batch', 'batch_output', 'batch', 'batch'].entries())
        await store.save(exampleFile({ id: `file_${number}`, purpose, createdAtMs: now + Math.floor(number / 2) }))
      const ids = async (query: Parameters<FileStore['list']>[1]): Promise<unknown> => {
        const { files, hasMore } = await store.list(ACCOUNT_ID, query, now)
        return [...files.map(({ id }) => id), hasMore]
      }
      expect(await ids({ limit: 3, order: 'desc' })).toEqual(['file_3', 'file_2', 'file_1', true])
      expect(await ids({ limit: 3, order: 'desc', after: 'file_1' })).toEqual(['file_0', false])
      expect(await ids({ limit: 2, order: 'asc', after: 'file_0' })).toEqual(['file_1', 'file_2', true])
      expect(await ids({ limit: 9, order: 'asc', purpose: 'batch' })).toEqual(['file_0', 'file_2', 'file_3', false])
      expect(await ids({ limit: 9, order: 'asc', after: 'file_9' })).toEqual([false])
    })

    check('purges what has expired', async (store) => {
      await store.save(exampleFile({ id: 'file_1', byteLength: 10 }))
      await store.save(exampleFile({ id: 'file_2', byteLength: 5, expiresAtMs: now }))
      await store.save(exampleFile({ id: 'file_3', byteLength: 7, accountId: 'account_2' }))
      expect(await store.purge(now, 10)).toEqual(['file_2'])
      expect(await store.purge(now, 10)).toEqual([])
      expect(await store.delete(ACCOUNT_ID, 'file_1')).toEqual(true)
    })
  })
}

/** One case for each guarantee of {@link BatchStore}. */
export function describeBatchStore(runner: ContractRunner, subject: ContractSubject<BatchStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const later = now + 1_000

  describe('batch store contract', () => {
    check('keeps the first outcome of a request', async (store) => {
      const first = exampleOutcome(0, { usage: { inputTokens: 3, outputTokens: 2 ** 40 }, amount: 2n ** 62n })
      expect(await store.add('batch_1', first, later)).toEqual(true)
      expect(await store.add('batch_1', exampleOutcome(0, { text: '{"second":1}' }), later)).toEqual(false)
      expect(await store.page('batch_1', -1, 10)).toEqual([first])
    })

    check('gives outcomes in order, page by page, and counts them', async (store) => {
      for (const line of [4, 0, 2, 3])
        await store.add('batch_1', exampleOutcome(line, { isAnswered: line !== 3 }), later)
      await store.add('batch_2', exampleOutcome(1), later)
      expect((await store.page('batch_1', -1, 2)).map(({ line }) => line)).toEqual([0, 2])
      expect((await store.page('batch_1', 2, 9)).map(({ line }) => line)).toEqual([3, 4])
      expect(await store.lines('batch_1', 0, 2)).toEqual([2, 3])
      expect(await store.tally('batch_1')).toEqual({ answered: 3, failed: 1 })
      expect(await store.tally('batch_9')).toEqual({ answered: 0, failed: 0 })
      expect(await store.page('batch_9', -1, 9)).toEqual([])
    })

    check('deletes and purges in steps, and touches no other batch', async (store) => {
      for (const line of [0, 1, 2]) await store.add('batch_1', exampleOutcome(line), later)
      await store.add('batch_2', exampleOutcome(0), later + 1)
      expect(await store.delete('batch_1', 2)).toEqual(2)
      expect(await store.delete('batch_1', 2)).toEqual(1)
      expect(await store.delete('batch_1', 2)).toEqual(0)
      await store.add('batch_3', exampleOutcome(0), later)
      expect(await store.purge(later, 10)).toEqual(1)
      expect(await store.tally('batch_2')).toEqual({ answered: 1, failed: 0 })
    })
  })
}

/** An example for suites of several stores. */
export function exampleFile(overrides: Partial<FileRecord> = {}): FileRecord {
  return {
    id: 'file_1',
    accountId: ACCOUNT_ID,
    purpose: 'batch',
    filename: 'requests.jsonl',
    byteLength: 120,
    createdAtMs: now,
    expiresAtMs: now + 60_000,
    ...overrides,
  }
}

function exampleOutcome(line: number, overrides: Partial<BatchOutcome> = {}): BatchOutcome {
  return { line, isAnswered: true, text: `{"line":${line}}`, usage: undefined, amount: 0n, ...overrides }
}
