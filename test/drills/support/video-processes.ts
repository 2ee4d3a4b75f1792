import { type DrillProcess, drillPrograms } from './drill-process.ts'
import type { DrillStore } from './open-drill-store.ts'

/** Settings of a gateway for videos. */
export interface VideoServerSettings {
  readonly store: DrillStore
  readonly vendorOrigin: string
  readonly vendorKey: string
  readonly key: string
  readonly account: string
  /** Dollars, credited once. */
  readonly credit: string
  readonly webhookSecret: string
  readonly pollIntervalMs: number
  /** Interval of refused connections: every n-th connection for a submission fails. If omitted, none fails. */
  readonly refuseEvery?: number
}

/** Reply to a query. */
interface VideoMeasures {
  readonly residentBytes: number
  /** When it asked the vendor about tasks since the last time, Unix milliseconds. */
  readonly askedAtMs: readonly number[]
}

/** Messages to the parent. */
export type VideoServerWords = { readonly url: string } | VideoMeasures

/** A gateway in a process of its own. */
export interface VideoProcess {
  readonly url: string
  /** Memory that it takes, and when it asked the vendor about tasks since the last time. */
  measure(): Promise<VideoMeasures>
  /** Sends a signal and waits for the end. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

/** Bundles the gateway once for a test file, and starts it on request. Processes that still run are killed at the end. */
export function videoProcesses(nodeOptions?: string): (settings: VideoServerSettings) => Promise<VideoProcess> {
  const start = drillPrograms(['video-server'], nodeOptions)
  return async (settings) => {
    const server: DrillProcess<{ readonly url: string }, VideoMeasures> = await start('video-server', settings)
    return {
      url: server.ready.url,
      measure: () => server.ask('measure'),
      end: (signal) => server.end(signal),
    }
  }
}
