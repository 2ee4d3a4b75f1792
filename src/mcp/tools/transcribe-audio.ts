import { Buffer } from 'node:buffer'
import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Form, FormPart } from '../../wire/multipart.ts'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model, noStream } from './arguments.ts'

/** Tool for `POST /v1/audio/transcriptions`, with a whole answer. */
export const transcribeAudio = defineTool({
  name: 'transcribe_audio',
  title: 'Transcribe a recording',
  description:
    'Transcribes a recording: as text, as subtitles, or with times or speakers if the model supports them. ' +
    'Charged by the second or by tokens.',
  annotations: MAKES,
  input: z.object({
    model,
    data: z.base64().min(4).describe('The recording in base64: flac, mp3, mp4, m4a, ogg, wav or webm.'),
    language: z.string().optional().describe('Language of the recording as ISO 639-1, such as en.'),
    prompt: z.string().optional().describe('Context, or words that the recording uses.'),
    response_format: z
      .enum(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'])
      .optional()
      .describe('Default json. Times and speakers if the model supports them. See gateway://catalog/{model}.'),
    timestamp_granularities: z
      .array(z.enum(['word', 'segment']))
      .optional()
      .describe('Requires verbose_json.'),
    stream: noStream,
    idempotency_key: idempotencyKey,
  }),
  output: z.object({
    model: z.string(),
    text: z.string().describe('The transcript, or the subtitles.'),
    answer: z.record(z.string(), z.unknown()).optional().describe('Whole answer, if the format is JSON.'),
  }),
  async answer({ data, idempotency_key: key, ...fields }, { gateway, call }) {
    const bytes = Buffer.from(data, 'base64')
    const form: Form = [...fieldParts(fields), filePart(bytes)]
    const answer = await call({ method: 'POST', path: '/v1/audio/transcriptions', form, idempotencyKey: key })
    const written = answer.body.toString('utf8')
    const id = gateway.catalog.find(fields.model)?.id ?? fields.model
    const isText = answer.headers.get('content-type')?.startsWith('text/') === true
    const parsed: unknown = isText ? { text: written } : parseVendorJson(written)
    if (!isJsonObject(parsed) || typeof parsed['text'] !== 'string') throw new GatewayError('upstream_invalid_response')
    const { text } = parsed
    return { structured: { model: id, text, ...(isText ? {} : { answer: parsed }) } }
  },
})

function fieldParts(fields: Readonly<Record<string, unknown>>): FormPart[] {
  return Object.entries(fields).flatMap(([name, value]): FormPart[] => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) return [{ kind: 'field', name, value: fieldText(value) }]
    return value.map((item) => ({ kind: 'field', name: `${name}[]`, value: fieldText(item) }))
  })
}

/** Objects are sent as JSON in a form. */
function fieldText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The file has no name: the gateway chooses one by its format. */
function filePart(bytes: Uint8Array): FormPart {
  const { byteLength } = bytes
  return {
    ...{ kind: 'file', name: 'file', filename: '', contentType: 'application/octet-stream' },
    ...{ chunks: [bytes], byteLength },
  } as const
}
