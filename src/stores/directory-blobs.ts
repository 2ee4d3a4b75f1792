import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { secretBytes } from '../core/ids.ts'
import { checkGivenMembers, memberNames } from '../core/known-members.ts'
import { assertBlobId, type BlobStore } from './blob-store.ts'

/** Options of {@link directoryBlobs}. */
export interface DirectoryBlobsOptions {
  /** Folder for this store alone, created if it does not exist. Several processes may share it, even on a network drive. */
  readonly path: string
}

const DIRECTORY_BLOBS_OPTIONS = memberNames<DirectoryBlobsOptions>()('path')

/** Suffix of the name of a file that is being written. */
const UNFINISHED = '.part'

/**
 * Creates a store with one file per content in a folder. The file's modification time is its expiry. Content is flushed to the
 * disk before `put` resolves.
 * @throws TypeError without a path.
 */
export function directoryBlobs(options: DirectoryBlobsOptions): BlobStore {
  checkGivenMembers(options, DIRECTORY_BLOBS_OPTIONS, 'directoryBlobs')
  const { path } = options
  if (typeof path !== 'string' || path === '') throw new TypeError('directoryBlobs: path must be the path of a folder')
  let made: Promise<unknown> | undefined

  async function folder(): Promise<void> {
    made ??= mkdir(path, { recursive: true })
    try {
      await made
    } catch (error) {
      made = undefined
      throw error
    }
  }

  return {
    async put({ id, expiresAtMs }, content) {
      assertBlobId(id)
      await folder()
      const unfinished = join(path, `${id}.${Buffer.from(secretBytes(6)).toString('hex')}${UNFINISHED}`)
      try {
        // The object mode of the reading side does not matter, because chunks are bytes.
        await pipeline(Readable.from(content), createWriteStream(unfinished, { flags: 'wx', mode: 0o600, flush: true }))
        await utimes(unfinished, expiresAtMs / 1_000, expiresAtMs / 1_000)
        const { size } = await stat(unfinished)
        await rename(unfinished, join(path, id))
        return size
      } catch (error) {
        await rm(unfinished, { force: true })
        throw error
      }
    },

    async get(id, { start, end } = { start: 0 }) {
      assertBlobId(id)
      const file = join(path, id)
      const byteLength = (await stat(file).catch(ignoreMissing))?.size
      if (byteLength === undefined) return undefined
      const last = Math.min(end ?? byteLength, byteLength)
      return { byteLength, content: start >= last ? NOTHING : createReadStream(file, { start, end: last - 1 }) }
    },

    async delete(id) {
      assertBlobId(id)
      try {
        await rm(join(path, id))
        return true
      } catch (error) {
        if (isMissing(error)) return false
        throw error
      }
    },

    async purge(nowMs, limit) {
      await folder()
      let count = 0
      for (const name of await readdir(path)) {
        if (count >= limit) break
        const file = join(path, name)
        const found = await stat(file).catch(ignoreMissing)
        if (found === undefined || found.mtimeMs + (name.endsWith(UNFINISHED) ? MAX_UPLOAD_MS : 0) > nowMs) continue
        await rm(file, { force: true })
        count++
      }
      return count
    },
  }
}

/** Files that were modified within this time may still be in use by a writer. */
const MAX_UPLOAD_MS = 24 * 60 * 60_000

const NOTHING: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} }

function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}
