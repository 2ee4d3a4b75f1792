import inspector from 'node:inspector/promises'
import { getHeapSpaceStatistics } from 'node:v8'

const session = new inspector.Session()

/** Answers of every measured Node program about itself. They need `--expose-gc`. */
export const processAnswers = {
  cpuMicroseconds: () => {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  /** Measured after a collection, so that garbage is not counted. */
  memoryBytes: () => {
    globalThis.gc()
    globalThis.gc()
    const { rss, heapUsed, external } = process.memoryUsage()
    const peakResident = process.resourceUsage().maxRSS * 1_024
    // Pages that V8 keeps for young objects, empty after the collection.
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.physical_space_size ?? 0
    return { resident: rss, peakResident, used: heapUsed + external, young }
  },
  startProfile: async () => {
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: 200 })
    await session.post('Profiler.start')
  },
  stopProfile: async () => {
    const { profile } = await session.post('Profiler.stop')
    session.disconnect()
    return profile
  },
}
