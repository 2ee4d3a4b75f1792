import { ClientError } from './client-error.ts'

/**
 * Image, recording or another file to send: a `File` or `Blob`, bytes (a Node `Buffer` is a `Uint8Array`), or the path of a file,
 * which only Node can read (and whose errors are Node's). A path is never a bare string, so that untrusted text cannot name a file by
 * accident.
 */
export type Upload = Blob | Uint8Array | ArrayBuffer | { readonly path: string }

/** Parts of a form of `POST /v1/images/edits`. */
export interface ImageEditFields {
  readonly image: Upload | readonly Upload[]
  readonly mask?: Upload | undefined
}

/** First bytes of formats, as Latin-1, by their media type. */
type Formats = Readonly<Record<string, RegExp>>

const PICTURES: Formats = {
  'image/png': /^\x89PNG/,
  'image/jpeg': /^\xff\xd8\xff/,
  'image/webp': /^RIFF....WEBP/s,
}

const RECORDINGS: Formats = {
  'audio/wav': /^RIFF....WAVE/s,
  'audio/flac': /^fLaC/,
  'audio/ogg': /^OggS/,
  'audio/mp4': /^....ftyp/s,
  'audio/webm': /^.E\xdf\xa3/s,
  'audio/mp3': /^(?:ID3|\xff[\xe2-\xff])/,
}

/**
 * Builds the form of an edit (API specification, "Image edit request"): `image` for one image, `image[]` for each of several. Fields
 * without a value are omitted.
 */
export async function imageEditForm({ image, mask, ...fields }: ImageEditFields): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries<unknown>(fields)) {
    if (value !== undefined && value !== null) form.set(name, String(value))
  }
  const images: readonly Upload[] = isList(image) ? image : [image]
  const field = images.length === 1 ? 'image' : 'image[]'
  for (const upload of images) form.append(field, await uploadedFile(upload, 'image'))
  if (mask !== undefined) form.set('mask', await uploadedFile(mask, 'mask'))
  return form
}

/** Builds the form of a transcription (OpenAI API, "Create transcription"). Fields without a value are omitted. */
export async function transcriptionForm({ file, ...fields }: { readonly file: Upload }): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries<unknown>(fields)) setField(form, name, value)
  form.set('file', await uploadedFile(file, 'audio', RECORDINGS))
  return form
}

/** Sets a field: a list as `name[]`, an object as JSON. A field without a value is omitted. */
export function setField(form: FormData, name: string, value: unknown): void {
  if (value === undefined || value === null) return
  if (!Array.isArray(value)) {
    form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
    return
  }
  form.delete(`${name}[]`)
  for (const item of value) form.append(`${name}[]`, String(item))
}

/** Builds the form of a file of requests (OpenAI API, "Upload file"). */
export async function fileForm(upload: {
  readonly file: Upload
  readonly purpose: string
  readonly expires_after?: object | undefined
}): Promise<FormData> {
  const form = new FormData()
  form.set('purpose', upload.purpose)
  for (const [name, value] of Object.entries<unknown>({ ...upload.expires_after }))
    form.set(`expires_after[${name}]`, String(value))
  form.set('file', await uploadedFile(upload.file, 'batch', { 'application/jsonl': /^/ }))
  return form
}

// Array.isArray does not narrow a readonly array.
function isList(image: Upload | readonly Upload[]): image is readonly Upload[] {
  return Array.isArray(image)
}

/**
 * Creates a file for a form. It keeps the name and media type of a `File`; other content gets its type from its first bytes.
 * @throws ClientError `invalid_request` if the upload is not a file, or is a path outside Node.
 */
export async function uploadedFile(upload: Upload, name: string, formats = PICTURES): Promise<File> {
  const blob = await blobOf(upload, name)
  const head = new Uint8Array(await blob.slice(0, 12).arrayBuffer())
  const text = String.fromCharCode(...head)
  const type =
    blob.type || Object.keys(formats).find((format) => formats[format]!.test(text)) || 'application/octet-stream'
  const ownName = blob instanceof File && blob.name !== '' ? blob.name : undefined
  return new File([blob], ownName ?? pathName(upload) ?? `${name}.${type.slice(type.indexOf('/') + 1)}`, { type })
}

async function blobOf(upload: Upload, name: string): Promise<Blob> {
  if (upload instanceof Blob) return upload
  // The standard type of a Blob's parts excludes arrays on shared memory, which it accepts anyway.
  if (ArrayBuffer.isView(upload) || upload instanceof ArrayBuffer) return new Blob([upload as BlobPart])
  if (typeof (upload as { path?: unknown } | undefined)?.path !== 'string') {
    throw uploadFault(name, "expected a Blob, bytes, or { path: 'boat.png' }")
  }
  const files = nodeFiles()
  if (files !== undefined) return new Blob([await files.readFile(upload.path)])
  throw uploadFault(name, 'a path can be read in Node only')
}

function uploadFault(param: string, reason: string): ClientError {
  return new ClientError('invalid_request', { message: `${param}: ${reason}`, param })
}

interface NodeFiles {
  readFile(path: string): Promise<Uint8Array<ArrayBuffer>>
}

/** Loads Node's file system at run time, so that bundlers find no import of it. */
function nodeFiles(): NodeFiles | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): unknown } }
  return process?.getBuiltinModule?.('node:fs/promises') as NodeFiles | undefined
}

function pathName(upload: Upload): string | undefined {
  return 'path' in upload
    ? upload.path.slice(Math.max(upload.path.lastIndexOf('/'), upload.path.lastIndexOf('\\')) + 1)
    : undefined
}
