import type { ImageEditRequest } from '../../endpoints/image-edits/image-edit-request.ts'
import type { OpenAIImageRequest } from '../../endpoints/images/openai/openai-image-request.ts'
import type { ImageOperation, VendorFailure } from '../vendor.ts'
import { relayPictures } from './openai-images-answer.ts'
import { editToWire, picturesToWire } from './openai-images-request.ts'
import { OpenAIImageStream } from './openai-images-stream.ts'

/** What tells one server of OpenAI's image dialect from another. */
export interface OpenAIImagesDialect {
  /** Path below the vendor's origin. */
  readonly path: string
  /** Reads an error object that came inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Text to image at a server of OpenAI's dialect. */
export function openaiImages(dialect: OpenAIImagesDialect): ImageOperation<OpenAIImageRequest> {
  return { toWire: (call) => picturesToWire(call, dialect.path), ...answers(dialect) }
}

/** Edits at a server of OpenAI's dialect. */
export function openaiImageEdits(dialect: OpenAIImagesDialect): ImageOperation<ImageEditRequest> {
  return { toWire: (call) => editToWire(call, dialect.path), ...answers(dialect) }
}

function answers({
  streamFailure,
}: OpenAIImagesDialect): Pick<Required<ImageOperation<{ readonly n?: number | null }>>, 'fromWire' | 'stream'> {
  return {
    fromWire: relayPictures,
    stream: (call) => new OpenAIImageStream({ pictures: call.request.n ?? 1, streamFailure }),
  }
}
