import { type Upload, uploadedFile } from './upload.ts'

/** What a form of `POST /v1/images/edits` is made of. */
export interface ImageEditFields {
  readonly image: Upload | readonly Upload[]
  readonly mask?: Upload | undefined
}

/**
 * Writes an edit as a form (API specification, "Image edit request"): `image` for one picture, `image[]` for each of several.
 * Fields that are not given stay away.
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

// Array.isArray does not narrow a readonly array.
function isList(image: Upload | readonly Upload[]): image is readonly Upload[] {
  return Array.isArray(image)
}
