import type { TranscriptionAbilities } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/** Largest file of a model without its own limit (OpenAI API, "Create transcription"). */
export const MAX_FILE_BYTES = 25 * 1024 * 1024

/** Fields that every model supports. */
const ALWAYS_TAKEN: ReadonlySet<string> = new Set(['model', 'file', 'response_format', 'stream'])

/** A request before it is known whether it streams. */
type Checked = Omit<TranscriptionRequest, 'stream' | 'audio' | 'form'>

/**
 * Checks fields that depend on the model.
 * @throws GatewayError 413 `body_too_large` for the file, `unsupported_parameter` for a format or a field that the model lacks.
 */
export function checkTranscriptionAbilities(request: Checked, abilities: TranscriptionAbilities | undefined): void {
  checkSize(request.file.byteLength, abilities?.maxFileBytes ?? MAX_FILE_BYTES)
  if (abilities === undefined) return
  const { formats, refusedFields = [] } = abilities
  if (!formats.includes(request.response_format))
    throw unsupportedField('response_format', `this model returns ${formats.join(', ')}`)
  for (const field of refusedFields) {
    const value = (request as unknown as Readonly<Record<string, unknown>>)[field]
    const isSet = value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
    if (isSet && !ALWAYS_TAKEN.has(field)) throw unsupportedField(field, 'this model does not support it')
  }
}

function checkSize(byteLength: number, most: number): void {
  if (byteLength === 0) throw invalidField('file', 'must not be empty')
  if (byteLength <= most) return
  const message = `file: has ${byteLength} bytes, and this model accepts at most ${most}`
  throw new GatewayError('body_too_large', { message, param: 'file' })
}
