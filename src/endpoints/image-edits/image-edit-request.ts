import type { Form, FormFile } from '../../wire/multipart.ts'

/** A picture in a JSON body: its URL (https or `data:`), or the id of a file at the vendor. */
export type ImageReference = { readonly image_url: string } | { readonly file_id: string }

/**
 * An edit of pictures (API specification, "Image edit request"; OpenAI API, "Create image edit"). Pictures are files of a
 * form, or references in a JSON body.
 */
export interface ImageEditRequest {
  readonly model: string
  readonly prompt: string
  /** The pictures, in the order in which they were given. */
  readonly images: readonly (FormFile | ImageReference)[]
  readonly mask?: FormFile | ImageReference | undefined
  readonly n?: number | null
  readonly size?: string | null
  readonly quality?: string | null
  readonly response_format?: string | null
  readonly output_format?: string | null
  readonly output_compression?: number | null
  readonly background?: string | null
  readonly stream?: boolean | null
  readonly partial_images?: number | null
  readonly user?: string
  /** The form it came in, with names, order and unknown fields; undefined for a JSON body. */
  readonly form?: Form | undefined
}
