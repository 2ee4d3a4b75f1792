/** The package's version, which the build writes here. */
declare const SIGNALBOX_VERSION: string | undefined

/** `development` where the source runs without a build. */
export const VERSION = typeof SIGNALBOX_VERSION === 'string' ? SIGNALBOX_VERSION : 'development'
