/** Version of the package, which the build inserts. */
declare const SIGNALBOX_VERSION: string | undefined

/** `development` if the source runs without a build. */
export const VERSION = typeof SIGNALBOX_VERSION === 'string' ? SIGNALBOX_VERSION : 'development'
