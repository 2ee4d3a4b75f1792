/** A file that a caller has uploaded or a vendor has written. */
export interface UploadedFile {
  readonly id: string
  /** Key of the owner. Each key is an account here, and others cannot see the file. */
  readonly apiKey: string
  readonly filename: string
  readonly purpose: string
  readonly bytes: Uint8Array
  /** Unix milliseconds. */
  readonly createdMs: number
  readonly expiresMs: number
}

/** The files of one vendor in one sandbox. */
export interface UploadedFiles {
  /** Stores a file, replacing one with the same id. */
  add(file: UploadedFile): UploadedFile
  find(id: string, apiKey: string, nowMs: number): UploadedFile | undefined
  /** Lists the files, newest first. */
  list(apiKey: string, nowMs: number): UploadedFile[]
  /** Returns false if there is no such file. */
  delete(id: string, apiKey: string, nowMs: number): boolean
}

/** The oldest files are dropped first. */
const MAX_FILES = 1_000

/** Creates an empty list of files. */
export function uploadedFiles(): UploadedFiles {
  const files = new Map<string, UploadedFile>()
  const find: UploadedFiles['find'] = (id, apiKey, nowMs) => {
    const file = files.get(id)
    return file?.apiKey === apiKey && nowMs < file.expiresMs ? file : undefined
  }
  return {
    add(file) {
      files.set(file.id, file)
      const [oldest] = files.keys()
      if (files.size > MAX_FILES && oldest !== undefined) files.delete(oldest)
      return file
    },
    find,
    list: (apiKey, nowMs) => [...files.values()].filter((file) => find(file.id, apiKey, nowMs) !== undefined).reverse(),
    delete: (id, apiKey, nowMs) => find(id, apiKey, nowMs) !== undefined && files.delete(id),
  }
}
