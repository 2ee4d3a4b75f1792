import * as z from 'zod'
import type { TRANSCRIPTION_FORMATS } from '../../catalog/model-facts.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { AudioFormat, AudioHeader } from '../../wire/audio/audio-header.ts'
import type { Form, FormField, FormFile } from '../../wire/write-form.ts'
import { invalidField } from '../field-errors.ts'
import { formFields, formValue, withoutEmptyInputs } from '../forms.ts'
import { listOf } from '../schema.ts'

/** Format of a transcript (OpenAI API, "Create transcription", `response_format`). */
export type TranscriptionFormat = (typeof TRANSCRIPTION_FORMATS)[number]

/** The checked text fields of a transcription. Lists are sent as `name[]` or as repeated `name`. */
export interface TranscriptionFields {
  readonly model: string
  readonly response_format?: TranscriptionFormat
  readonly stream?: boolean
  /** ISO 639-1 code. */
  readonly language?: string
  readonly languages?: readonly string[]
  readonly keywords?: readonly string[]
  readonly prompt?: string
  readonly temperature?: number
  readonly timestamp_granularities?: readonly ('word' | 'segment')[]
  readonly include?: readonly string[]
  /** `auto`, an object as JSON text, or its members. */
  readonly chunking_strategy?: string | Readonly<Record<string, string>>
  readonly known_speaker_names?: readonly string[]
  readonly known_speaker_references?: readonly string[]
}

/** A checked transcription request (OpenAI API, "Create transcription"). */
export interface TranscriptionRequest extends Omit<TranscriptionFields, 'response_format' | 'stream'> {
  readonly file: FormFile
  /** Always set. Default `json`. */
  readonly response_format: TranscriptionFormat
  /** Whether the answer is streamed. Also false for models that never stream. */
  readonly stream: boolean
  /** Facts from the first bytes of the file. */
  readonly audio: AudioHeader
  /** The original form, with names, order and unknown fields. */
  readonly form: Form
}

/** Maximum number of languages, keywords or `include` values. */
export const MAX_LIST = 1_000

const words = (most: number) => listOf(z.string()).max(most).optional()

/** The rules of the text fields that do not depend on the model. */
export const transcriptionSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    response_format: z.enum(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json']).optional(),
    stream: z.boolean().optional().describe('models that cannot stream answer whole'),
    language: z.string().optional().describe('of the recording, as ISO 639-1'),
    languages: words(MAX_LIST),
    keywords: words(MAX_LIST),
    prompt: z.string().optional(),
    temperature: z.number().min(0).max(1).optional(),
    timestamp_granularities: listOf(z.enum(['word', 'segment']))
      .max(2)
      .optional()
      .describe('needs verbose_json'),
    include: words(MAX_LIST),
    chunking_strategy: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
    known_speaker_names: words(4),
    known_speaker_references: words(4),
  }),
)

/** Rules of the fields and the file, for API documents. */
export const transcriptionFormSchema = onDemand(() =>
  transcriptionSchema().extend({
    file: z.string().meta({ format: 'binary', description: 'flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm' }),
  }),
)

const fieldKinds = onDemand(() => formFields(transcriptionSchema()))

/** A member of an object, as OpenAI's SDK writes it: `chunking_strategy[type]`. */
const MEMBER_NAME = /^([a-z_]+)\[([a-z_]{1,64})\]$/

const FILE_NAME = 'file'
/** Rejected because a server would fetch it, so its length would be unknown. */
const URL_NAME = 'url'

/** A transcription sent as a form. Its known fields are parsed; the form is kept without an empty file input. */
export class TranscriptionForm {
  /** Known fields by name, without brackets, with parsed numbers and booleans. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly file: FormFile
  readonly form: Form

  /**
   * Keeps fields with other names unread.
   * @throws GatewayError `invalid_request` for a known field of the wrong type, a file that is text, missing or repeated, or a
   *   field in another spelling (`model[]`, `Model`): the vendor would choose among them.
   */
  constructor(received: Form) {
    const form = withoutEmptyInputs(received, (name) => name === FILE_NAME)
    const fields = new Map<string, unknown>()
    let file: FormFile | undefined
    for (const part of form) {
      const name = fieldName(part.name)
      const member = objectMember(name)
      const kind = fieldKinds().get(name)
      if (name === FILE_NAME) {
        if (part.kind !== 'file') throw invalidField(FILE_NAME, 'must be a file, not a text field')
        if (file !== undefined) throw invalidField(FILE_NAME, 'is given more than once')
        file = part
      } else if (name === URL_NAME) throw invalidField(URL_NAME, 'is not supported; send the recording as file')
      else if (kind !== undefined || member !== undefined) {
        if (part.kind === 'file') throw invalidField(name, 'must be a text field, not a file')
        if (member !== undefined) fields.set(member.object, withMember(fields.get(member.object), member.name, part))
        else if (kind === 'list') fields.set(name, [...((fields.get(name) as string[] | undefined) ?? []), part.value])
        else if (fields.has(name)) throw invalidField(name, 'is given more than once')
        else fields.set(name, formValue(name, part.value, kind ?? 'text'))
      }
    }
    if (file === undefined) throw invalidField(FILE_NAME, 'is required, as a file')
    this.fields = Object.fromEntries(fields)
    this.file = file
    this.form = form
  }

  /** The requested model, or `undefined` if there is no such field. */
  get model(): unknown {
    return this.fields['model']
  }
}

/** Returns the name of a field without the brackets that some clients append to the names of lists. */
export function fieldName(name: string): string {
  const bare = name.replace(/\[\d{0,3}\]$/, '')
  if (fieldKinds().get(bare) === 'list') return bare
  if (objectMember(name) !== undefined) return name
  const meant = (name.includes('[') ? name.slice(0, name.indexOf('[')) : name).trim().toLowerCase()
  if (name !== meant && (fieldKinds().has(meant) || meant === FILE_NAME || meant === URL_NAME))
    throw invalidField(name, `must be written ${meant}`)
  return name
}

/** Returns the name of a field as OpenAI's API reads it: lists are written with brackets, such as `include[]`. */
export function vendorFieldName(name: string): string {
  const field = fieldName(name)
  return fieldKinds().get(field) === 'list' ? `${field}[]` : field
}

/** Returns the names of form fields that are unknown here and reach only servers of the same dialect. */
export function unknownFields(form: Form): readonly string[] {
  const names = form.map(({ name }) => fieldName(name))
  return [...new Set(names)].filter(
    (name) => name !== FILE_NAME && !fieldKinds().has(name) && objectMember(name) === undefined,
  )
}

/** Returns the fields that a request sets to a value other than their default, to report them if they have no effect. */
export function changedFields<Field extends string>(
  request: Readonly<Partial<Record<Field, unknown>>>,
  fields: readonly Field[],
): readonly Field[] {
  return fields.filter((field) => request[field] !== undefined && request[field] !== DEFAULTS.get(field))
}

/** Defaults of OpenAI API, "Create transcription". */
const DEFAULTS: ReadonlyMap<string, unknown> = new Map([['temperature', 0]])

/** Returns the member of a known object, or `undefined` if the name is not one. */
function objectMember(field: string): { readonly object: string; readonly name: string } | undefined {
  const [, object = '', name = ''] = MEMBER_NAME.exec(field) ?? []
  return fieldKinds().get(object) === 'object' ? { object, name } : undefined
}

function withMember(members: unknown, name: string, { name: field, value }: FormField): object {
  if (members === undefined) return { [name]: value }
  if (typeof members === 'object' && members !== null && !Object.hasOwn(members, name))
    return { ...members, [name]: value }
  throw invalidField(field, 'is given more than once')
}

/**
 * Bytes per second at the lowest usual rate of speech: 13 kbit/s (GSM) in WAV, 8 kbit/s as MP3 and AAC, 6 kbit/s as Opus. They
 * bound the length of a file whose headers do not contain it.
 */
const MIN_BYTES_PER_SECOND: Readonly<Record<AudioFormat, number>> = {
  wav: 1_625,
  flac: 1_000,
  mp4: 1_000,
  ogg: 750,
  mp3: 1_000,
  webm: 750,
  mpeg: 1_000,
}

/** Factor up to which a report may exceed the measured length: silence may be counted, and a minimum length charged. */
const REPORT_SLACK = 4

/** A file and the known facts about its length. */
export type Recording = Pick<TranscriptionRequest, 'audio'> & { readonly file: { readonly byteLength: number } }

/** Returns the seconds of a recording: measured by its headers, else the maximum for its number of bytes. */
export function audioLength({ file, audio }: Recording): number {
  return audio.seconds ?? file.byteLength / MIN_BYTES_PER_SECOND[audio.format]
}

/** Returns the maximum seconds that a vendor can have processed, whatever the headers say. */
export function longestReport({ file, audio }: Recording): number {
  const byBytes = file.byteLength / MIN_BYTES_PER_SECOND[audio.format]
  return Math.max(byBytes, (audio.seconds ?? 0) * REPORT_SLACK, MINIMUM_SECONDS)
}

/** Minimum length that vendors charge for short recordings; some charge less. */
const MINIMUM_SECONDS = 60
