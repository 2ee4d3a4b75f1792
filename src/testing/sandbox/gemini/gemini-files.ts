import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { parseVendorJson } from '../../../core/json.ts'
import type { UploadedFile, UploadedFiles } from '../batches/uploaded-files.ts'
import { asText } from '../request-fields.ts'
import { credentialOf, jsonReply, RefusedCall, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { checkGeminiKey, field, GEMINI_ERRORS, GEMINI_HEADERS, refuseGemini } from './gemini-errors.ts'

const UPLOAD_PATH = '/upload/v1beta/files'
const FILE_PATH = /^\/v1beta\/(files\/[^/:]+)$/
const DOWNLOAD_PATH = /^\/download\/v1beta\/(files\/[^/:]+):download$/

/** How long Gemini stores files (Gemini API, "Files API"). */
export const GEMINI_FILE_LIFE_MS = 48 * 60 * 60 * 1000

/** The file service rejects longer ids, such as those of batch results. Downloads accept them. */
const LONGEST_ID = 'files/'.length + 40

/** Gemini: upload by `multipart/related`, metadata, download and deletion of files. */
export function geminiFiles(files: UploadedFiles): SandboxOperation[] {
  const found = (call: SandboxCall, nowMs: number, pattern: RegExp): UploadedFile => {
    checkGeminiKey(call)
    const name = pattern.exec(call.path)?.[1] ?? ''
    if (pattern === FILE_PATH && name.length > LONGEST_ID)
      refuseGemini("* name: File ID (name excluding 'files/') cannot be more than 40 characters.\n")
    const file = files.find(name, credentialOf(call), nowMs)
    if (file !== undefined) return file
    const message = `You do not have permission to access the File ${name} or it may not exist.`
    throw new RefusedCall(GEMINI_ERRORS.status(403, message))
  }
  const base = { vendor: 'gemini', errors: GEMINI_ERRORS, needsJson: false, promptText: () => '' } as const
  return [
    {
      ...base,
      operation: 'files',
      matches: ({ method, path }) => method === 'POST' && path === UPLOAD_PATH,
      answer(call, { nowMs }) {
        checkGeminiKey(call)
        return jsonReply(200, GEMINI_HEADERS, { file: fileObject(files.add(uploaded(call, nowMs))) }, 2)
      },
    },
    {
      ...base,
      operation: 'file-content',
      matches: ({ method, path }) => method === 'GET' && DOWNLOAD_PATH.test(path),
      answer(call, { nowMs }) {
        const { bytes } = found(call, nowMs, DOWNLOAD_PATH)
        if (new URLSearchParams(call.query).get('alt') !== 'media') refuseGemini('Invalid value for alt: media only.')
        const headers = ['content-type', 'application/octet-stream', ...GEMINI_HEADERS]
        return { status: 200, headers, pieces: [bytes], streamed: false }
      },
    },
    {
      ...base,
      operation: 'file',
      matches: ({ method, path }) => method === 'GET' && FILE_PATH.test(path),
      answer: (call, { nowMs }) => jsonReply(200, GEMINI_HEADERS, fileObject(found(call, nowMs, FILE_PATH)), 2),
    },
    {
      ...base,
      operation: 'file-delete',
      matches: ({ method, path }) => method === 'DELETE' && FILE_PATH.test(path),
      answer(call, { nowMs }) {
        files.delete(found(call, nowMs, FILE_PATH).id, credentialOf(call), nowMs)
        return jsonReply(200, GEMINI_HEADERS, {}, 2)
      },
    },
  ]
}

function uploaded(call: SandboxCall, nowMs: number): UploadedFile {
  if (new URLSearchParams(call.query).get('uploadType') !== 'multipart')
    refuseGemini('The stand-in takes uploads with uploadType=multipart.')
  const parts = relatedParts(call)
  if (parts === undefined) return refuseGemini('Expected multipart/related with metadata and content.')
  const metadata = field(parseVendorJson(parts.metadata), 'file')
  return {
    id: `files/${randomUUID().replaceAll('-', '').slice(0, 12)}`,
    apiKey: credentialOf(call),
    filename: asText(field(metadata, 'displayName')),
    purpose: asText(field(metadata, 'mimeType')),
    bytes: parts.content,
    createdMs: nowMs,
    expiresMs: nowMs + GEMINI_FILE_LIFE_MS,
  }
}

/** The two parts of a `multipart/related` body (RFC 2387); undefined for any other. */
function relatedParts({ headers, bytes }: SandboxCall): { metadata: string; content: Uint8Array } | undefined {
  const boundary = /^multipart\/related;.*?boundary="?([^";]+)"?/i.exec(headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return undefined
  const body = Buffer.from(bytes)
  const first = body.indexOf(`--${boundary}\r\n`)
  const second = body.indexOf(`\r\n--${boundary}\r\n`, first + 1)
  const end = body.lastIndexOf(`\r\n--${boundary}--`)
  if (first !== 0 || second === -1 || end < second) return undefined
  const contentOf = (start: number, stop: number): Buffer => {
    const headEnd = body.indexOf('\r\n\r\n', start)
    return body.subarray(headEnd === -1 ? stop : headEnd + 4, stop)
  }
  return { metadata: contentOf(first, second).toString('utf8'), content: new Uint8Array(contentOf(second + 2, end)) }
}

function fileObject({ id, filename, purpose, bytes, createdMs, expiresMs }: UploadedFile): object {
  return {
    name: id,
    displayName: filename,
    mimeType: purpose,
    sizeBytes: String(bytes.byteLength),
    createTime: new Date(createdMs).toISOString(),
    updateTime: new Date(createdMs).toISOString(),
    expirationTime: new Date(expiresMs).toISOString(),
    uri: `https://generativelanguage.googleapis.com/v1beta/${id}`,
    state: 'ACTIVE',
    source: 'UPLOADED',
  }
}
