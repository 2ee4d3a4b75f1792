import * as z from 'zod'
import { isSet } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { Form, FormFile, FormPart } from '../../wire/write-form.ts'
import { invalidField } from '../field-errors.ts'
import { formFields, formValue, withoutEmptyInputs } from '../forms.ts'
import type { PictureOptions } from '../images/openai/openai-image-request.ts'
import { pictureSchema } from '../images/openai/openai-image-schema.ts'
import { listOf } from '../schema.ts'

/** An image in a JSON body: its URL (https or `data:`), or the id of a file at the vendor. */
export type ImageReference = { readonly image_url: string } | { readonly file_id: string }

/**
 * A request to edit images (API specification, "Image edit request"; OpenAI API, "Create image edit"). Images are files
 * of a form, or references in a JSON body.
 */
export interface ImageEditRequest extends PictureOptions {
  readonly model: string
  readonly prompt: string
  /** The images, in the order of the request. */
  readonly images: readonly (FormFile | ImageReference)[]
  readonly mask?: FormFile | ImageReference | undefined
  /** Image that is laid over the first one to guide the edit. */
  readonly markup?: FormFile | ImageReference | undefined
  readonly stream?: boolean | null
  readonly user?: string
  /** The original form with names, order and unknown fields, or `undefined` for a JSON body. */
  readonly form?: Form | undefined
}

const reference = onDemand(() =>
  z
    .looseObject({ image_url: z.string().min(1).nullish(), file_id: z.string().min(1).nullish() })
    .refine(({ image_url, file_id }) => isSet(image_url) !== isSet(file_id), 'needs either image_url or file_id'),
)

/** Images of a JSON body (OpenAI API reference, "Create image edit"). */
export const imageReferencesSchema = onDemand(() =>
  z.looseObject({
    images: listOf(reference()).min(1),
    mask: reference().nullish(),
    markup: reference().nullish(),
  }),
)

/** An image of a checked JSON body with one name. Unknown members stay, because they reach the vendor. */
export function imageReference(entry: z.infer<ReturnType<typeof reference>>): ImageReference {
  const { image_url, file_id, ...rest } = entry
  return isSet(image_url) ? { ...rest, image_url } : { ...rest, file_id: file_id ?? '' }
}

/** Fields of the schema, and fields of newer models that reach the vendor as numbers and texts. */
const fieldKinds = onDemand(
  () => new Map([...formFields(pictureSchema()), ['complexity', 'text'], ['frame_count', 'integer']] as const),
)

/** Names of images. SDKs write `image` for one file and repeat `image[]` for several; some frameworks number them. */
export const IMAGE_NAME = /^image(?:\[\d{0,3}\])?$/

const MASK_NAME = 'mask'

/** An edit request sent as a form. Its known fields are parsed; the form is kept without empty file inputs. */
export class ImageEditForm {
  /** Known text fields by name, with parsed numbers and booleans. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly images: readonly FormFile[]
  readonly mask: FormFile | undefined
  readonly form: Form

  /**
   * Ignores parts with other names.
   * @throws GatewayError `invalid_request` for a known field of the wrong type or that is repeated or spelled differently (`n[]`).
   */
  constructor(received: Form) {
    const form = withoutEmptyInputs(received, (name) => name === MASK_NAME || IMAGE_NAME.test(name))
    const fields = new Map<string, unknown>()
    const images: FormFile[] = []
    let mask: FormFile | undefined
    for (const part of form) {
      const kind = fieldKinds().get(part.name)
      if (kind !== undefined) {
        if (part.kind === 'file') throw invalidField(part.name, 'must be a text field, not a file')
        if (fields.has(part.name)) throw invalidField(part.name, 'is given more than once')
        fields.set(part.name, formValue(part.name, part.value, kind))
      } else if (IMAGE_NAME.test(part.name)) images.push(fileOf(part, 'image'))
      else if (part.name === MASK_NAME) {
        if (mask !== undefined) throw invalidField(MASK_NAME, 'is given more than once')
        mask = fileOf(part, MASK_NAME)
      } else refuseOtherSpelling(part.name)
    }
    this.fields = Object.fromEntries(fields)
    this.images = images
    this.mask = mask
    this.form = form
  }

  /** The requested model, or `undefined` if there is no such field. */
  get model(): unknown {
    return this.fields['model']
  }
}

function fileOf(part: FormPart, param: string): FormFile {
  if (part.kind === 'file') return part
  throw invalidField(param, 'must be a file, not a text field')
}

/** Rejects `n[]`, `n[0]` or `N`: some form parsers read them as `n`, so they would reach the vendor unchecked. */
function refuseOtherSpelling(name: string): void {
  const bracket = name.indexOf('[')
  const meant = (bracket === -1 ? name : name.slice(0, bracket)).trim().toLowerCase()
  if (fieldKinds().has(meant) || meant === MASK_NAME || IMAGE_NAME.test(meant))
    throw invalidField(name, `must be written ${meant}`)
}
