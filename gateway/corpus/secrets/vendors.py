"""The tokens of vendors that `detect-secrets` lacks or knows in an old form: kind, what stands in every match (with `|`
between), pattern. A pattern begins at a place that no letter or digit precedes, and looks
ahead only so far: what repeats its beginning a million times must not be read to the end each time.
"""

# What stands in every match is how it begins: a text is asked for all of these at once.
PREFIXED = (
    ("catchment_key", "ck_", r"(?<!_)ck_(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{12,}"),
    ("aws_key", "bedrock-api-key-|ABSK", r"(?:bedrock-api-key-|ABSK)[A-Za-z0-9+/]{40,}={0,2}"),
    ("gcp_key", "AIza", r"AIza[A-Za-z0-9_\-]{30,}"),
    ("gcp_key", "ya29.", r"ya29\.[A-Za-z0-9_\-.]{20,}"),
    ("gcp_key", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_\-]{20,}"),
    ("gcp_key", "1//", r"1//0[A-Za-z0-9_\-]{30,}"),
    ("github_token", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{16,}"),
    ("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_\-]{16,}"),
    ("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("slack_token", "xox", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{10,}"),
    ("slack_token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9\-]{20,}"),
    ("stripe_key", "sk_|rk_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("openai_key", "sk-", r"(?<!-)sk-(?=[A-Za-z_\-]{0,64}[0-9])(?:[a-z]{2,10}-)?[A-Za-z0-9_\-]{16,}"),
    ("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{16,}"),
    ("clickup_token", "pk_", r"pk_[0-9]{4,}_[A-Z0-9]{24,}"),
    ("vendor_token", "hf_", r"(?<!_)hf_[A-Za-z0-9]{30,}"),
    ("vendor_token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("vendor_token", "SG.", r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    ("vendor_token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,}"),
    ("vendor_token", "dop_v1_|doo_v1_|dor_v1_", r"do[por]_v1_[a-f0-9]{64}"),
    ("vendor_token", "shpat_|shpca_|shppa_|shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("vendor_token", "dapi", r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    ("vendor_token", "key-", r"(?<!-)key-[a-f0-9]{32}"),
    ("vendor_token", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    ("vendor_token", "ntn_|secret_", r"(?:ntn_|(?<!_)secret_(?=[A-Za-z]{0,64}[0-9]))[A-Za-z0-9]{40,}"),
    ("vendor_token", "ATATT3|ATCTT3|ATBB", r"(?:AT[AC]TT3|ATBB)[A-Za-z0-9_\-=]{28,}"),
    ("vendor_token", "hvs.|hvb.|hvr.", r"hv[sbr]\.[A-Za-z0-9_\-]{24,}"),
    ("vendor_token", "dp.", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9_\-.]{40,}"),
    ("vendor_token", "glsa_|glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    ("vendor_token", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("vendor_token", "NRAK-|NRJS-", r"NR(?:AK|JS)-[A-Za-z0-9]{19,}"),
    ("vendor_token", "sntrys_|sntryu_", r"sntry[su]_[A-Za-z0-9_+/=\-]{32,}"),
    ("vendor_token", "sbp_|sb_secret_", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_\-]{20,})"),
    ("vendor_token", "figd_", r"figd_[A-Za-z0-9_\-]{32,}"),
    ("vendor_token", "EAA", r"EAA[A-Za-z0-9]{80,}"),
    ("vendor_token", "HRKU-", r"HRKU-[A-Za-z0-9_\-]{36,}"),
    ("vendor_token", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("vendor_token", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    ("vendor_token", "r8_", r"r8_[A-Za-z0-9]{37,}"),
    ("vendor_token", "sq0atp-|EAAA", r"(?:sq0atp-[A-Za-z0-9_\-]{22}|EAAA[A-Za-z0-9_\-+=]{60})"),
    ("vendor_token", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    ("vendor_token", "oy2", r"oy2[a-z0-9]{43}"),
    (
        "vendor_token",
        "tfp_|CFPAT-|shippo_|EZAK|sk.eyJ|phx_|pscale_|snyk_|duffel_|ops_eyJ|fo1_",
        (
            r"(?:tfp_|CFPAT-|shippo_(?:live|test)_|EZAK|sk\.eyJ|phx_|pscale_(?:tkn|pw|oauth)_|snyk_[a-z]{3}\.|"
            r"duffel_(?:live|test)_|ops_eyJ|fo1_)[A-Za-z0-9_\-.]{38,}"
        ),
    ),
    ("vendor_token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("vendor_token", "pul-|bkua_|gta_", r"(?:pul-|bkua_|gta_)[A-Za-z0-9]{40}"),
    ("vendor_token", "tskey-", r"tskey-[a-z]{2,10}-[A-Za-z0-9\-]{20,}"),
    ("vendor_token", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    ("vendor_token", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("vendor_token", "sl.", r"sl\.(?:u\.)?(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{120,}"),
    ("vendor_token", "LTAI", r"LTAI[A-Za-z0-9]{16,24}"),
    ("vendor_token", "AQVN", r"AQVN[A-Za-z0-9_\-]{35,}"),
    ("vendor_token", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    ("vendor_token", "1/|2/", r"[12](?:/[0-9]{13,20}){1,2}:[a-f0-9]{32}"),
    ("private_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("gitlab_token", "glffct-|glwt-", r"gl(?:ffct|wt)-[A-Za-z0-9_\-]{16,}"),
    ("vendor_token", "fm2_", r"fm2_[A-Za-z0-9+/]{38,}={0,2}"),
    ("vendor_token", "AQ.", r"AQ\.Ab[A-Za-z0-9_\-]{40,}"),
    ("vendor_token", "AKC", r"AKC[A-Za-z0-9]{60,}"),
    ("vendor_token", "cmVmdGtu", r"cmVmdGtu[A-Za-z0-9]{50,}"),
    (
        "vendor_token",
        "api_org_|nvapi-|csk-|jina_|tvly-|pcsk_|wandb_v1_|tgp_v1_",
        r"(?:api_org_|nvapi-|csk-|jina_|tvly-|pcsk_|wandb_v1_|tgp_v1_)(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{32,}",
    ),
    (
        "vendor_token",
        "fw_|fc-|sk_|sgp_|squ_|sqp_|sqa_|e2b_|key_|wk-1.|signkey-",
        (
            r"(?:fw_(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{24}|fc-[a-f0-9]{32}|sk_[a-f0-9]{48}|sgp_(?:[a-f0-9]{16}_|"
            r"local_)?[a-f0-9]{40}|sq[upa]_[a-f0-9]{40}|e2b_[a-f0-9]{40}|key_[a-f0-9]{64}|wk-1\.[a-f0-9]{64}|"
            r"signkey-[a-z]{4,8}-[a-f0-9]{32,64})(?![A-Za-z0-9])"
        ),
    ),
    (
        "vendor_token",
        "pa-|00",
        (
            r"(?:pa-|"
            r"00)(?=[A-Z0-9_\-]{0,64}[a-z])(?=[a-z0-9_\-]{0,64}[A-Z])(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{40,43}(?![A-Za-z0-9_\-])"
        ),
    ),
    (
        "vendor_token",
        "nfp_|nfc_|nfo_|vcp_|vca_|vcr_|vck_|rnd_|npg_|pnu_|apify_|apk_|polar_|retool_|unkey_|re_",
        (
            r"(?:nf[pco]_[A-Za-z0-9]{36,}|vc[park]_[A-Za-z0-9]{24,}|rnd_[A-Za-z0-9]{32}|"
            r"npg_(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{12,}|pnu_[a-z0-9]{36}|apify_api_[A-Za-z0-9]{36}|"
            r"apk_user_[A-Za-z0-9]{32,}|polar_(?:oat|pat|cst)_[A-Za-z0-9]{32,}|"
            r"retool_(?=[a-z_]{0,64}[A-Z0-9])[A-Za-z0-9_\-]{26}|unkey_[A-Za-z0-9]{20,}|"
            r"re_(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,})(?![A-Za-z0-9_])"
        ),
    ),
    (
        "vendor_token",
        "vercel_blob_rw_|napi_|mdb_sa_sk_|syt_|zpka_|tr_|cfut_|cfat_|cfk_|lin_oauth_",
        (
            r"(?:vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{24,}|napi_[a-z0-9]{64}|mdb_sa_sk_[A-Za-z0-9_\-]{40}|"
            r"syt_[A-Za-z0-9+/=]{2,128}_[A-Za-z]{20}_[A-Za-z0-9]{6}|zpka_[a-f0-9]{32}_[a-f0-9]{8}|tr_(?:prod|stg|"
            r"dev)_[A-Za-z0-9]{20,}|cf(?:ut|at|k)_[A-Za-z0-9]{40}[a-f0-9]{8}|lin_oauth_[a-f0-9]{64})"
        ),
    ),
    (
        "vendor_token",
        "CCIPAT_|CCIPRJ_|rdme_|fio-u-|CLOJARS_|ico-|dt0|pat.|cio",
        (
            r"(?:CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}|rdme_[a-z0-9]{70}|fio-u-[A-Za-z0-9_\-]{64}|"
            r"CLOJARS_[a-z0-9]{60}|ico-(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{32}|"
            r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|pat\.[A-Za-z0-9_\-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}|"
            r"cio(?=[A-Za-z]{0,64}[0-9])(?=[a-z0-9]{0,64}[A-Z])[A-Za-z0-9]{32}(?![A-Za-z0-9]))"
        ),
    ),
    (
        "vendor_token",
        "xkeysib-|xsmtpsib-|mlsn.",
        r"(?:x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}|mlsn\.[a-f0-9]{64})",
    ),
    (
        "vendor_token",
        "rzp_live_|rzp_test_|live_|FLWSECK",
        (
            r"(?:rzp_(?:live|test)_[A-Za-z0-9]{14}|live_(?:[A-Za-z0-9]{30}|[a-f0-9]{35}|"
            r"(?=[a-z_\-]{0,64}[A-Z0-9])[A-Za-z0-9_\-]{40})(?![A-Za-z0-9_\-])|FLWSECK(?:_TEST)?-[a-z0-9]{32}-X)"
        ),
    ),
    (
        "vendor_token",
        "access-|pat-|sdk-",
        (
            r"(?:access-(?:production|sandbox|development)|pat-[a-z]{2}\d|"
            r"sdk)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
        ),
    ),
    ("vendor_token", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{6}-[A-Z0-9]{5}|[A-Z0-9]{11})(?:-[A-Z0-9]{5}){3}"),
    (
        "vendor_token",
        "t1.|p.eyJ|eyJrIjoi",
        (
            r"(?:t1\.[A-Za-z0-9_\-]{20,}=*\.[A-Za-z0-9_\-]{80,}|p\.eyJ[A-Za-z0-9_\-]{20,}\.[A-Za-z0-9_\-]{20,}|"
            r"eyJrIjoi[A-Za-z0-9+/_\-]{40,}={0,2})"
        ),
    ),
    ("vendor_token", "IGQ", r"IGQ[A-Za-z0-9_\-]{100,}"),
    ("vendor_token", "AKID", r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("private_key", "xprv|yprv|zprv|tprv", r"[xyzt]prv[A-Za-z0-9]{100,112}"),
)
# It stands somewhere within.
WITHIN = (
    ("azure_key", "Q~", r"[A-Za-z0-9_~.\-]{3}[78]Q~[A-Za-z0-9_~.\-]{31,34}"),
    (
        "azure_key",
        "AzFu|AzCa|AIoT|APIM|ACDb|+ASt|+AMC|+ABa",
        r"[A-Za-z0-9+/]{33,76}(?:AzFu|AzCa|AIoT|APIM|ACDb|\+ASt|\+AMC|\+ABa)[A-Za-z0-9+/]{5,12}={0,2}",
    ),
    ("vendor_token", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_\-]{16,}"),
    (
        "vendor_token",
        ".webhook.office.com/",
        r"[A-Za-z0-9\-]+\.webhook\.office\.com/[A-Za-z0-9_\-.~+/=:]{16,}",
    ),
    ("vendor_token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{60,}"),
    ("vendor_token", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/[0-9]+/[A-Za-z0-9]{5,}"),
    ("vendor_token", "hooks.slack.com/", r"hooks\.slack\.com/(?:workflows|triggers)/[A-Za-z0-9/]{30,}"),
    ("vendor_token", ".make.com/", r"hook\.[a-z0-9]{2,4}\.make\.com/[a-z0-9]{24,}"),
    ("vendor_token", "maker.ifttt.com/", r"maker\.ifttt\.com/[A-Za-z0-9_\-/]{1,100}/key/[A-Za-z0-9_\-]{16,}"),
    (
        "azure_key",
        "AZDO|JQQJ99|AzSe",
        (
            r"(?:[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{40,56}JQQJ99[A-Za-z0-9]{16,40}|"
            r"[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6})"
        ),
    ),
    ("vendor_token", "NRAL", r"[a-f0-9]{32,36}(?:FFFF)?NRAL(?![A-Za-z0-9])"),
)
