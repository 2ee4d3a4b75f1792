import type { VideoRequest } from '../../endpoints/videos/video-request.ts'
import type { Vendor, VendorCall } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/** The submission of a video at a vendor: its answer is the promise of a result. */
export function videosExchange(vendor: Vendor, call: VendorCall<VideoRequest>): VendorExchange | undefined {
  const operation = vendor.videos
  if (operation === undefined) return undefined
  return {
    requests: [operation.toWire(call)],
    whole([answer]) {
      if (answer === undefined) return undefined
      const task = operation.accepted({ ...answer, body: joinChunks(answer.chunks) })
      return task === undefined ? undefined : { chunks: [], usage: undefined, task }
    },
    stream() {
      throw new TypeError('videos are never streamed')
    },
  }
}
