import { readdir } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { directoryBlobs } from '../../src/stores/directory-blobs.ts'
import { describeBlobStore } from '../../src/testing/contracts/blob-store-contract.ts'
import { temporaryPaths } from './sqlite/support/temporary-folder.ts'

const newPath = temporaryPaths()

describeBlobStore({ describe, it, expect }, { create: () => directoryBlobs({ path: newPath() }) })

describe('a folder of blobs', () => {
  it('is left without a trace of content that failed', async () => {
    const path = newPath()
    const store = directoryBlobs({ path })
    const failing = async function* (): AsyncIterable<Uint8Array> {
      yield Buffer.from('begun')
      throw new Error('cut')
    }

    await expect(store.put({ id: 'file_1', expiresAtMs: Date.now() + 60_000 }, failing())).rejects.toThrow('cut')

    expect(await readdir(path)).toEqual([])
  })
})
