import { GatewayError } from '../../core/errors.ts'
import type { Form, FormFile, FormPart } from '../../wire/multipart.ts'

/** What a text field holds once it is read. */
type FieldKind = 'text' | 'integer' | 'boolean'

const FIELDS: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ['model', 'text'],
  ['prompt', 'text'],
  ['n', 'integer'],
  ['size', 'text'],
  ['quality', 'text'],
  ['response_format', 'text'],
  ['output_format', 'text'],
  ['output_compression', 'integer'],
  ['background', 'text'],
  ['moderation', 'text'],
  ['stream', 'boolean'],
  ['partial_images', 'integer'],
  ['user', 'text'],
])

// SDKs write `image` for one file and repeat `image[]` for several; some frameworks number them.
const IMAGE_NAME = /^image(?:\[\d{0,3}\])?$/

/** The name under which a mask is sent. */
const MASK_NAME = 'mask'

/** An edit request as it stands in a form: its known fields read, the form kept with all that is in it. */
export class ImageEditForm {
  /** Known text fields by name; those that are no number or boolean where one belongs stay texts. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly images: readonly FormFile[]
  readonly mask: FormFile | undefined
  readonly form: Form

  /**
   * Parts of other names are left alone.
   * @throws GatewayError `invalid_request` naming a known field that is a file, a picture that is text, either given
   *   twice where it can stand only once, or under another spelling (`n[]`): what counts would be the vendor's choice.
   */
  constructor(form: Form) {
    const fields = new Map<string, unknown>()
    const images: FormFile[] = []
    let mask: FormFile | undefined
    for (const part of form) {
      const kind = FIELDS.get(part.name)
      if (kind !== undefined) {
        if (part.kind === 'file') throw invalid(part.name, 'must be a text field, not a file')
        if (fields.has(part.name)) throw invalid(part.name, 'is given more than once')
        fields.set(part.name, fieldValue(part.value, kind))
      } else if (IMAGE_NAME.test(part.name)) images.push(fileOf(part, 'image'))
      else if (part.name === MASK_NAME) {
        if (mask !== undefined) throw invalid(MASK_NAME, 'is given more than once')
        mask = fileOf(part, MASK_NAME)
      } else refuseOtherSpelling(part.name)
    }
    this.fields = Object.fromEntries(fields)
    this.images = images
    this.mask = mask
    this.form = form
  }

  /** The model asked for; undefined when there is no such field. */
  get model(): unknown {
    return this.fields['model']
  }
}

function fileOf(part: FormPart, param: string): FormFile {
  if (part.kind === 'file') return part
  throw invalid(param, 'must be a file, not a text field')
}

/** Some readers of forms take `n[]`, `n[0]` or `N` for `n`, and would find there what was neither checked nor held for. */
function refuseOtherSpelling(name: string): void {
  const bracket = name.indexOf('[')
  const meant = (bracket === -1 ? name : name.slice(0, bracket)).trim().toLowerCase()
  if (FIELDS.has(meant) || meant === MASK_NAME || IMAGE_NAME.test(meant))
    throw invalid(name, `must be written ${meant}`)
}

/** Only texts that everybody reads alike are converted; all others fail the check of their type. */
function fieldValue(text: string, kind: FieldKind): unknown {
  if (kind === 'integer') return /^-?\d{1,15}$/.test(text) ? Number(text) : text
  if (kind === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function invalid(param: string, text: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${text}`, param })
}
