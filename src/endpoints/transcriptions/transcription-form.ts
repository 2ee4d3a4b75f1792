import { GatewayError } from '../../core/errors.ts'
import type { Form, FormField, FormFile } from '../../wire/multipart.ts'
import { invalidField } from '../field-errors.ts'
import { type FormValueKind, formValue, withoutEmptyInputs } from '../form-values.ts'

/** Type of a text field. An object is sent as JSON text, or as one field per member. */
type FieldKind = FormValueKind | 'list' | 'object'

const FIELDS: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ['model', 'text'],
  ['response_format', 'text'],
  ['stream', 'boolean'],
  ['language', 'text'],
  ['languages', 'list'],
  ['keywords', 'list'],
  ['prompt', 'text'],
  ['temperature', 'number'],
  ['timestamp_granularities', 'list'],
  ['include', 'list'],
  ['chunking_strategy', 'object'],
  ['known_speaker_names', 'list'],
  ['known_speaker_references', 'list'],
])

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
      const kind = FIELDS.get(name)
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
        else fields.set(name, kind === 'object' ? part.value : formValue(name, part.value, kind ?? 'text'))
      }
    }
    if (file === undefined)
      throw new GatewayError('invalid_request', { message: 'file: is required, as a file', param: FILE_NAME })
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
  if (FIELDS.get(bare) === 'list') return bare
  if (objectMember(name) !== undefined) return name
  const meant = (name.includes('[') ? name.slice(0, name.indexOf('[')) : name).trim().toLowerCase()
  if (name !== meant && (FIELDS.has(meant) || meant === FILE_NAME || meant === URL_NAME))
    throw invalidField(name, `must be written ${meant}`)
  return name
}

/** Returns the name of a field as OpenAI's API reads it: lists are written with brackets, such as `include[]`. */
export function vendorFieldName(name: string): string {
  const field = fieldName(name)
  return FIELDS.get(field) === 'list' ? `${field}[]` : field
}

/** Returns the names of form fields that are unknown here and reach only servers of the same dialect. */
export function unknownFields(form: Form): readonly string[] {
  const names = form.map(({ name }) => fieldName(name))
  return [...new Set(names)].filter(
    (name) => name !== FILE_NAME && !FIELDS.has(name) && objectMember(name) === undefined,
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
  return FIELDS.get(object) === 'object' ? { object, name } : undefined
}

function withMember(members: unknown, name: string, { name: field, value }: FormField): object {
  if (members === undefined) return { [name]: value }
  if (typeof members === 'object' && members !== null && !Object.hasOwn(members, name))
    return { ...members, [name]: value }
  throw invalidField(field, 'is given more than once')
}
