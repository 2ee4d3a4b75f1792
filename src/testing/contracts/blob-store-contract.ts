import { BLOB_ROW_BYTES, type BlobRange, type BlobStore } from '../../stores/blob-store.ts'
import { type ContractRunner, type ContractSubject, contractCases, failureName, NOW_MS } from './contract-runner.ts'

/** One case for each guarantee of {@link BlobStore}. */
export function describeBlobStore(runner: ContractRunner, subject: ContractSubject<BlobStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const expiresAtMs = NOW_MS + 60_000
  const put = (store: BlobStore, id: string, ...pieces: readonly string[]) =>
    store.put({ id, expiresAtMs }, piecesOf(pieces.map((text) => Buffer.from(text))))

  describe('blob store contract', () => {
    check('gives content as it was put, whatever its pieces were', async (store) => {
      expect(await put(store, 'file_1', 'first,', '', ' second,', ' third')).toEqual(20)
      expect(await textOf(store, 'file_1')).toEqual('first, second, third')
      expect((await store.get('file_1'))?.byteLength).toEqual(20)
    })

    check('gives ranges, and nothing beyond the end', async (store) => {
      await put(store, 'file_1', '0123', '456789')
      expect(await textOf(store, 'file_1', { start: 3, end: 6 })).toEqual('345')
      expect(await textOf(store, 'file_1', { start: 8 })).toEqual('89')
      expect(await textOf(store, 'file_1', { start: 8, end: 100 })).toEqual('89')
      expect(await textOf(store, 'file_1', { start: 10 })).toEqual('')
      expect((await store.get('file_1', { start: 3, end: 6 }))?.byteLength).toEqual(10)
    })

    check('gives large content byte for byte, at every edge', async (store) => {
      const bytes = Buffer.alloc(BLOB_ROW_BYTES * 2 + 17)
      for (let index = 0; index < bytes.byteLength; index++) bytes[index] = (index * 31 + (index >> 9)) % 251
      const pieces = [bytes.subarray(0, 5), bytes.subarray(5, BLOB_ROW_BYTES + 9), bytes.subarray(BLOB_ROW_BYTES + 9)]
      expect(await store.put({ id: 'file_1', expiresAtMs }, piecesOf(pieces))).toEqual(bytes.byteLength)
      expect((await bytesOf(store, 'file_1')).equals(bytes)).toEqual(true)
      for (const edge of [BLOB_ROW_BYTES, BLOB_ROW_BYTES * 2]) {
        const part = await bytesOf(store, 'file_1', { start: edge - 2, end: edge + 2 })
        expect(part.equals(bytes.subarray(edge - 2, edge + 2))).toEqual(true)
      }
    })

    check('keeps empty content', async (store) => {
      expect(await put(store, 'file_1')).toEqual(0)
      expect(await textOf(store, 'file_1')).toEqual('')
    })

    check('replaces what an id held', async (store) => {
      await put(store, 'file_1', 'a longer text')
      await put(store, 'file_1', 'short')
      expect(await textOf(store, 'file_1')).toEqual('short')
    })

    check('keeps what an id held when new content fails', async (store) => {
      await put(store, 'file_1', 'first')
      const failing = async function* (): AsyncIterable<Uint8Array> {
        yield Buffer.from('sec')
        throw new RangeError('cut')
      }
      expect(await failureName(() => store.put({ id: 'file_1', expiresAtMs }, failing()))).toEqual('RangeError')
      expect(await failureName(() => store.put({ id: 'file_2', expiresAtMs }, failing()))).toEqual('RangeError')
      expect(await textOf(store, 'file_1')).toEqual('first')
      expect(await store.get('file_2')).toEqual(undefined)
    })

    check('deletes once, and knows nothing afterwards', async (store) => {
      await put(store, 'file_1', 'first')
      await put(store, 'file_2', 'second')
      expect(await store.delete('file_1')).toEqual(true)
      expect(await store.delete('file_1')).toEqual(false)
      expect(await store.get('file_1')).toEqual(undefined)
      expect(await textOf(store, 'file_2')).toEqual('second')
    })

    check('gives a reader of content that is deleted meanwhile nothing of another', async (store) => {
      const size = 3 * BLOB_ROW_BYTES
      await store.put({ id: 'file_1', expiresAtMs: NOW_MS }, piecesOf([Buffer.alloc(size, 1)]))
      const reader = (await store.get('file_1'))!.content[Symbol.asyncIterator]()
      await reader.next()
      await store.delete('file_1')
      await store.put({ id: 'file_2', expiresAtMs: NOW_MS }, piecesOf([Buffer.alloc(size, 2)]))
      const rest = await reader.next().catch(() => undefined)
      expect(Buffer.from(rest?.value ?? []).includes(2)).toEqual(false)
    })

    check('refuses ids that could be paths', async (store) => {
      for (const id of ['', '../file', 'a/b', 'a.b', 'a\u0000b', 'x'.repeat(129)])
        expect(await failureName(() => put(store, id, 'text'))).toEqual('RangeError')
    })

    check('purges what has expired, and no more than it may', async (store) => {
      for (const id of ['file_1', 'file_2', 'file_3'])
        await store.put({ id, expiresAtMs: NOW_MS }, piecesOf([Buffer.from('old')]))
      await put(store, 'file_4', 'kept')
      expect(await store.purge(NOW_MS - 1_000, 10)).toEqual(0)
      expect(await store.purge(NOW_MS, 2)).toEqual(2)
      expect(await store.purge(NOW_MS, 10)).toEqual(1)
      expect(await textOf(store, 'file_4')).toEqual('kept')
      expect(await store.get('file_1')).toEqual(undefined)
    })
  })
}

async function* piecesOf(pieces: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* pieces
}

async function bytesOf(store: BlobStore, id: string, range?: BlobRange): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of (await store.get(id, range))?.content ?? []) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

async function textOf(store: BlobStore, id: string, range?: BlobRange): Promise<string> {
  return (await bytesOf(store, id, range)).toString()
}
