import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { firstHeader, mediaType } from '../../wire/headers.ts'
import type { WireAnswer } from '../vendor.ts'
import { asBuffer } from './json-bytes.ts'
import { isErrorEnvelope } from './openai-chat-dialect.ts'

/** What an error body says, whatever its layout. */
export interface ErrorEnvelope {
  /** Undefined when the body says nothing readable. */
  readonly message: string | undefined
  readonly code: string | undefined
  readonly type: string | undefined
  readonly param: string | undefined
  /** Was the body an error object of a known layout? False for pages, plain text and anything else. */
  readonly isStructured: boolean
}

// Enough to tell what a proxy's page is about.
const MAX_TEXT_LENGTH = 500

const SILENT: ErrorEnvelope = {
  message: undefined,
  code: undefined,
  type: undefined,
  param: undefined,
  isStructured: false,
}

/** Reads the body of an answer as an error. */
export function errorEnvelopeOf(answer: WireAnswer): ErrorEnvelope {
  const text = asBuffer(answer.body).toString('utf8').trim()
  const parsed = parseVendorJson(text)
  if (isJsonObject(parsed)) return errorEnvelope(parsed)
  // A 2xx body that is no JSON object may hold an answer; its text is none of an error's business.
  if (parsed !== undefined || text === '' || (answer.status >= 200 && answer.status < 300)) return SILENT
  const isPage = text.startsWith('<') || mediaType(firstHeader(answer.headers, 'content-type')) === 'text/html'
  const message = isPage ? /<title[^>]*>([^<]*)<\/title>/i.exec(text)?.[1]?.trim() : text.slice(0, MAX_TEXT_LENGTH)
  return { ...SILENT, message: message === '' ? undefined : message }
}

/**
 * Reads an error object: `{ error: { message, type, param, code } }`, `{ error: "text" }`, flat
 * `{ code, message, type? }`, and `{ detail, error_code? }` with a text or a list of validation errors.
 */
export function errorEnvelope(body: Record<string, unknown>): ErrorEnvelope {
  const error = body['error']
  if (isJsonObject(error)) return fields(error)
  if (typeof error === 'string') return { ...fields(body), message: error, isStructured: true }
  if (body['detail'] !== undefined) return detailEnvelope(body)
  return isErrorEnvelope(body) || body['object'] === 'error' ? fields(body) : { ...fields(body), isStructured: false }
}

function fields(error: Record<string, unknown>): ErrorEnvelope {
  return {
    message: textOf(error['message']),
    code: textOf(error['code']),
    type: textOf(error['type']),
    param: textOf(error['param']),
    isStructured: true,
  }
}

function detailEnvelope(body: Record<string, unknown>): ErrorEnvelope {
  const code = textOf(body['error_code'])
  const detail = body['detail']
  if (!Array.isArray(detail)) return { ...SILENT, message: textOf(detail), code, isStructured: true }
  const problems = detail.filter(isJsonObject).map((problem) => ({
    place: Array.isArray(problem['loc']) ? problem['loc'].slice(1).join('.') : '',
    text: textOf(problem['msg']) ?? 'invalid',
  }))
  const message = problems.map(({ place, text }) => (place === '' ? text : `${place}: ${text}`)).join('; ')
  const param = problems[0]?.place
  return { ...SILENT, message: textOf(message), code, param: textOf(param), isStructured: true }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}
