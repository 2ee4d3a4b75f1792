import { drawPicture } from '../pictures/draw-picture.ts'
import { geminiImageModel, picturePixels } from './gemini-image-models.ts'

/** What is drawn. */
export interface GeminiPictureWish {
  readonly model: string
  /** As the wire names it; absent: 1K. */
  readonly size?: string | undefined
  /** Absent: 1:1. */
  readonly ratio?: string | undefined
  /** `image/png`; anything else gives JPEG. */
  readonly mimeType?: string | undefined
  /** Equal seeds give equal pictures. */
  readonly seed: string
}

/** A picture, and what it costs. */
export interface GeminiPicture {
  readonly mimeType: string
  readonly base64: string
  readonly tokens: number
}

/** Draws a picture of the pixel size that the model gives for a size and a ratio (Gemini API, "Image generation"). */
export function geminiPicture(wish: GeminiPictureWish): GeminiPicture {
  const model = geminiImageModel(wish.model)
  const size = wish.size ?? '1K'
  const [width, height] = picturePixels(model, size, wish.ratio ?? '1:1')
  const format = wish.mimeType === 'image/png' ? 'png' : 'jpeg'
  const bytes = drawPicture({ width, height, format, seed: wish.seed })
  return {
    mimeType: `image/${format}`,
    base64: Buffer.from(bytes).toString('base64'),
    tokens: model.sizes.get(size) ?? 0,
  }
}
